//go:build ignore

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts packets that the kernel could not redirect. The XDP program is not informed of them.
 * Example: on a bond, native XDP runs on the slaves, whose frames no socket of the bond gets.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "counters.h"

#define ENOMEM 12
#define ENOSPC 28
#define ENOBUFS 105

/* The id of the steering program's map of rings. Set before the program is loaded. */
const volatile __u32 rings_id = 0;

/*
 * Arguments of the tracepoint: dev, xdp, tgt, err, map_type, map_id, index, in all kernels
 * since 5.6 (include/trace/events/xdp.h).
 */
enum { ARG_ERR = 3, ARG_MAP_ID = 5 };

/* A socket that is full or has no free chunk has its own counters: XDP_STATISTICS. */
static __always_inline int is_counted_by_socket(int err)
{
	return err == -ENOMEM || err == -ENOSPC || err == -ENOBUFS;
}

SEC("raw_tp/xdp_redirect_err")
int roced_redirect(struct bpf_raw_tracepoint_args *ctx)
{
	if ((__u32)ctx->args[ARG_MAP_ID] == rings_id && !is_counted_by_socket(ctx->args[ARG_ERR]))
		count(DROP_REDIRECT);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
