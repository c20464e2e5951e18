/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "headers.h"
#include "maps.h"
#include "verdict.h"

#define ROCE_PORT 4791
#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset; not DF */

static __always_inline int is_vlan_tag(__be16 ethertype)
{
	return ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD);
}

/* The offset of the IP header in the frame. */
static __always_inline int ip_offset(const struct packet *p)
{
	return p->ip - (void *)(long)p->ctx->data;
}

/* Steps over a tag if it is of this VLAN; else PASS_VLAN. */
static __always_inline enum verdict parse_tag(struct packet *p, __be16 *ethertype, __u16 vlan)
{
	struct vlan_tag *tag = p->next;

	if ((void *)(tag + 1) > p->end)
		return PASS_NOT_ROCE;
	if ((bpf_ntohs(tag->tci) & 0xfff) != vlan)
		return PASS_VLAN;
	*ethertype = tag->ethertype;
	p->next = tag + 1;
	return REDIRECTED;
}

/*
 * Steps over the tag of the card's VLAN, and before it over one of VLAN 0, which only has
 * a priority: Linux treats such a frame as untagged too. Other tags are PASS_VLAN.
 */
static __always_inline enum verdict parse_vlan(struct packet *p, __be16 *ethertype)
{
	enum verdict verdict;

	if (!is_vlan_tag(*ethertype))
		return device_vlan ? PASS_VLAN : REDIRECTED;
	verdict = parse_tag(p, ethertype, 0);
	if (verdict == PASS_NOT_ROCE)
		return verdict;
	if (device_vlan && (verdict || is_vlan_tag(*ethertype)))
		verdict = parse_tag(p, ethertype, device_vlan);
	else if (device_vlan)
		return PASS_VLAN;
	if (verdict)
		return verdict;
	return is_vlan_tag(*ethertype) ? PASS_VLAN : REDIRECTED;
}

static __always_inline enum verdict parse_ethernet(struct packet *p, __be16 *ethertype)
{
	struct ethhdr *eth = p->next;

	if ((void *)(eth + 1) > p->end)
		return PASS_NOT_ROCE;
	*ethertype = eth->h_proto;
	p->next = eth + 1;
	return parse_vlan(p, ethertype);
}

/*
 * In RoCEv2 the IP header is the GRH: its addresses are the GIDs, and the engine
 * writes it to receive buffers instead of InfiniBand's GRH.
 */
static __always_inline enum verdict parse_ipv4(struct packet *p)
{
	struct iphdr *ip = p->next;

	if ((void *)(ip + 1) > p->end || ip->version != 4 || ip->ihl < 5 ||
	    ip->protocol != IPPROTO_UDP)
		return PASS_NOT_ROCE;
	/* RoCEv2 never fragments, and only the first fragment would have a port. */
	if (ip->frag_off & bpf_htons(IPV4_FRAGMENT))
		return PASS_FRAGMENT;
	p->ip = ip;
	p->is_ipv6 = 0;
	return REDIRECTED;
}

static __always_inline enum verdict parse_ipv6(struct packet *p)
{
	struct ipv6hdr *ip = p->next;

	if ((void *)(ip + 1) > p->end || ip->version != 6)
		return PASS_NOT_ROCE;
	if (ip->nexthdr == IPPROTO_FRAGMENT)
		return PASS_FRAGMENT;
	/* RoCEv2 has no extension headers. */
	if (ip->nexthdr != IPPROTO_UDP)
		return PASS_NOT_ROCE;
	p->ip = ip;
	p->is_ipv6 = 1;
	return REDIRECTED;
}

/* Everything but UDP to the RoCEv2 port is for the kernel. */
static __always_inline enum verdict parse_udp(struct packet *p)
{
	if ((void *)(udp(p) + 1) > p->end || udp(p)->dest != bpf_htons(ROCE_PORT))
		return PASS_NOT_ROCE;
	return REDIRECTED;
}

/*
 * Without CAP_PERFMON the verifier refuses a pointer with a variable offset, so this
 * copies the header.
 */
static __always_inline enum verdict parse_udp_behind_options(struct packet *p)
{
	__u32 offset = ip_offset(p) + ipv4(p)->ihl * 4;
	struct udphdr header;

	if (bpf_xdp_load_bytes(p->ctx, offset, &header, sizeof(header)) ||
	    header.dest != bpf_htons(ROCE_PORT))
		return PASS_NOT_ROCE;
	return REDIRECTED;
}
