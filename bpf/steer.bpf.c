//go:build ignore

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steers RoCEv2 packets for this card into AF_XDP rings, drops invalid packets for
 * it, and passes everything else to the kernel.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "headers.h"
#include "maps.h"
#include "parse.h"
#include "verdict.h"

#define MULTICAST_QPN 0xffffff

/* Packets that are not for us pass: a bridge, a macvlan or another stack may take them. */
static __always_inline enum verdict check_destination(const struct packet *p)
{
	struct address address = destination(p);

	if (is_to_group(p)) {
		int attached = is_attached_group(&address);

		/* Keeps clang from merging this lookup with the other: the JIT could not inline it. */
		asm volatile("");
		return attached ? REDIRECTED : PASS_GROUP;
	}
	return role_of(&address) == OWN ? REDIRECTED : PASS_NOT_OWN;
}

/*
 * Frames to another MAC are flooded, or for a macvlan child, a bridge or a container; the
 * kernel calls them PACKET_OTHERHOST. Group and broadcast MACs are taken, as by ip_rcv.
 */
static __always_inline enum verdict check_mac(const struct packet *p)
{
	const struct ethhdr *eth = (void *)(long)p->ctx->data;
	__u64 dest;

	if ((void *)(eth + 1) > p->end)
		return PASS_NOT_ROCE; /* cannot be: it is for the verifier */
	if (any_mac || eth->h_dest[0] & 1)
		return REDIRECTED;
	dest = mac(eth->h_dest);
	return dest == own_macs[0] || dest == own_macs[1] ? REDIRECTED : PASS_OTHER_HOST;
}

/*
 * Fragments of the frame count too, but most frames have none and end with the linear part.
 * Lengths are compared, not pointers: the verifier of Linux 6.1 does not know that a swapped
 * 16-bit number is small, and refuses to add it to a pointer.
 */
static __always_inline int is_truncated(const struct packet *p)
{
	if (ip_len(p) <= p->end - p->ip)
		return 0;
	return (__u64)(ip_offset(p) + ip_len(p)) > bpf_xdp_get_buff_len(p->ctx);
}

static __always_inline enum verdict check_lengths(const struct packet *p)
{
	const struct bth *transport = bth(p);
	const struct deth *datagram = (const void *)(transport + 1);
	int need = sizeof(struct udphdr) + sizeof(*transport) + ICRC_LEN;
	int udp_len = bpf_ntohs(udp(p)->len);

	if (is_truncated(p))
		return DROP_TRUNCATED;
	if (udp_len != ip_payload(p) || udp_len < need)
		return DROP_LENGTH;
	if ((void *)(transport + 1) > p->end)
		return DROP_TRUNCATED;
	if (transport->opcode >> 5 != OPCODE_SERVICE_UD)
		return REDIRECTED;
	if (udp_len < need + (int)sizeof(*datagram))
		return DROP_LENGTH;
	return (void *)(datagram + 1) > p->end ? DROP_TRUNCATED : REDIRECTED;
}

/*
 * XDP bypasses the kernel's checks of sources, so they are made here. Packets that we sent
 * ourselves have been delivered by the engine.
 */
static __always_inline enum verdict check_source(const struct packet *p)
{
	struct address address;

	if (is_from_group(p))
		return DROP_MULTICAST_SOURCE;
	if (is_from_martian(p))
		return DROP_MARTIAN_SOURCE;
	if (!is_own_tail(source_tail(p)))
		return REDIRECTED;
	address = source(p);
	switch (role_of(&address)) {
	case OWN:
		return DROP_OWN_SOURCE;
	case BROADCAST:
		return DROP_MARTIAN_SOURCE;
	default:
		return REDIRECTED;
	}
}

/* A filter against floods; the engine checks again. No queue pair has number 0xFFFFFF. */
static __always_inline enum verdict check_queue_pair(const struct packet *p)
{
	__u32 qpn = bpf_ntohl(bth(p)->qpn) & QPN_MASK;

	if (is_to_group(p))
		return qpn == MULTICAST_QPN ? REDIRECTED : DROP_GROUP_QPN;
	return is_queue_pair(qpn) ? REDIRECTED : DROP_UNKNOWN_QP;
}

/* If the queue has no socket, bpf_redirect_map returns its last argument. */
static __always_inline enum verdict redirect(const struct packet *p)
{
	long answer = bpf_redirect_map(&rings, p->ctx->rx_queue_index, XDP_DROP);

	return answer == XDP_REDIRECT ? REDIRECTED : DROP_NO_RING;
}

/* The checks in their order: the first one that fails decides. */
static __always_inline enum verdict check(struct packet *p)
{
	return parse_udp(p)
	       ?: check_destination(p)
	       ?: check_mac(p)
	       ?: check_lengths(p)
	       ?: check_source(p)
	       ?: check_queue_pair(p)
	       ?: redirect(p);
}

/* RoCEv2 uses no IPv4 options: a packet for us with options is dropped. */
static __always_inline enum verdict check_with_options(struct packet *p)
{
	return parse_udp_behind_options(p) ?: check_destination(p) ?: check_mac(p) ?: DROP_OPTIONS;
}

/* Each IP version has its own inlined copy of check, with fewer branches. */
static __always_inline enum verdict steer(struct packet *p)
{
	__be16 ethertype = 0;
	enum verdict verdict = parse_ethernet(p, &ethertype);

	if (verdict)
		return verdict;
	if (ethertype == bpf_htons(ETH_P_IP))
		return parse_ipv4(p) ?: (has_options(p) ? check_with_options(p) : check(p));
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(p) ?: check(p);
	return PASS_NOT_ROCE;
}

SEC("xdp.frags")
int roced_steer(struct xdp_md *ctx)
{
	struct packet p = {
		.ctx = ctx,
		.next = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	enum verdict verdict = steer(&p);

	count(verdict);
	return action(verdict);
}

char _license[] SEC("license") = "Dual BSD/GPL";
