/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "verdict.h"

/* How many packets ended in each verdict. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VERDICTS);
	__type(key, enum verdict);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(enum verdict verdict)
{
	__u64 *packets = bpf_map_lookup_elem(&counters, &verdict);

	if (packets)
		++*packets;
}
