/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"

struct vlan_tag {
	__be16 tci;
	__be16 ethertype;
};

/* Base transport header, InfiniBand specification volume 1, 9.2. */
struct bth {
	__u8 opcode;
	__u8 flags;
	__be16 pkey;
	__be32 qpn; /* the upper 8 bits are not part of it */
	__be32 psn;
};

/* Datagram extended transport header, 9.3.3. */
struct deth {
	__be32 qkey;
	__be32 source_qpn;
};

#define ICRC_LEN 4
#define OPCODE_SERVICE_UD 3 /* the opcode's upper three bits */

/*
 * A packet. Its headers must be in the linear part of the frame, which ends at end;
 * the payload need not. Fields are read from the headers where they are needed: a
 * value that is kept across a table lookup costs a store to the stack, and without
 * CAP_PERFMON a store costs a speculation barrier.
 */
struct packet {
	struct xdp_md *ctx;
	void *end;
	void *next; /* the first byte not parsed yet */
	void *ip;
	int is_ipv6; /* a constant everywhere, because all functions are inlined */
};

static __always_inline const struct iphdr *ipv4(const struct packet *p)
{
	return p->ip;
}

static __always_inline const struct ipv6hdr *ipv6(const struct packet *p)
{
	return p->ip;
}

/* Only for packets without IPv4 options. */
static __always_inline const struct udphdr *udp(const struct packet *p)
{
	return p->ip + (p->is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
}

static __always_inline const struct bth *bth(const struct packet *p)
{
	return (const void *)(udp(p) + 1);
}

static __always_inline int has_options(const struct packet *p)
{
	return ipv4(p)->ihl > 5;
}

/* The length of the IP packet, from its header. */
static __always_inline int ip_len(const struct packet *p)
{
	if (p->is_ipv6)
		return sizeof(struct ipv6hdr) + bpf_ntohs(ipv6(p)->payload_len);
	return bpf_ntohs(ipv4(p)->tot_len);
}

/* ip_len without the IP header, which has no options. May be negative. */
static __always_inline int ip_payload(const struct packet *p)
{
	return ip_len(p) - (int)((void *)udp(p) - p->ip);
}

static __always_inline int is_ipv4_group(__be32 ip)
{
	return (ip & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000);
}

static __always_inline int is_to_group(const struct packet *p)
{
	return p->is_ipv6 ? ipv6(p)->daddr.s6_addr[0] == 0xff : is_ipv4_group(ipv4(p)->daddr);
}

static __always_inline int is_from_group(const struct packet *p)
{
	return p->is_ipv6 ? ipv6(p)->saddr.s6_addr[0] == 0xff : is_ipv4_group(ipv4(p)->saddr);
}

static __always_inline struct address address_ipv4(const __be32 *ip)
{
	struct address a = { .vlan = device_vlan, .ethertype = ETH_P_IP };

	__builtin_memset(a.ip + 10, 0xff, 2);
	__builtin_memcpy(a.ip + 12, ip, 4);
	return a;
}

static __always_inline struct address address_ipv6(const struct in6_addr *ip)
{
	struct address a = { .vlan = device_vlan, .ethertype = ETH_P_IPV6 };

	__builtin_memcpy(a.ip, ip, 16);
	return a;
}

static __always_inline struct address destination(const struct packet *p)
{
	return p->is_ipv6 ? address_ipv6(&ipv6(p)->daddr) : address_ipv4(&ipv4(p)->daddr);
}

static __always_inline struct address source(const struct packet *p)
{
	return p->is_ipv6 ? address_ipv6(&ipv6(p)->saddr) : address_ipv4(&ipv4(p)->saddr);
}

/* A MAC as in own_macs: three 16-bit words, in memory order. */
static __always_inline __u64 mac(const __u8 *bytes)
{
	const __u16 *words = (const void *)bytes;

	return words[0] | (__u64)words[1] << 16 | (__u64)words[2] << 32;
}

/* Martian as in the kernel's ip_route_input_slow, in net/ipv4/route.c. */
static __always_inline int is_martian_ipv4(__be32 ip)
{
	return (ip & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000) || !ip || !~ip;
}

/*
 * ::1, as in the kernel's ip6_rcv_core, in net/ipv6/ip6_input.c; ::ffff:a.b.c.d, which the
 * engine would take for an IPv4 host; and ::, which cannot be answered.
 */
static __always_inline int is_martian_ipv6(const struct in6_addr *ip)
{
	if (ip->s6_addr32[0] | ip->s6_addr32[1])
		return 0;
	if (ip->s6_addr32[2])
		return ip->s6_addr32[2] == bpf_htonl(0xffff);
	return !(ip->s6_addr32[3] & ~bpf_htonl(1));
}

static __always_inline int is_from_martian(const struct packet *p)
{
	return p->is_ipv6 ? is_martian_ipv6(&ipv6(p)->saddr) : is_martian_ipv4(ipv4(p)->saddr);
}

/* The last 16 bits of the source address. */
static __always_inline __u16 source_tail(const struct packet *p)
{
	return p->is_ipv6 ? bpf_ntohs(ipv6(p)->saddr.s6_addr16[7]) : bpf_ntohl(ipv4(p)->saddr);
}
