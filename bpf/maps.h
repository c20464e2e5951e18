/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "counters.h"

#define QPN_BITS 24
#define QPN_MASK ((1u << QPN_BITS) - 1)

/* The VLAN of the card; 0: untagged. Set before the program is loaded. */
const volatile __u16 device_vlan = 0;

/*
 * The key of an address. It is never a MAC, because 32 IPv4 groups share one. An IPv4
 * address is ::ffff:a.b.c.d, as in a GID; the EtherType distinguishes it from the same
 * address in an IPv6 packet.
 */
struct address {
	__u16 vlan;	 /* host order, 0: untagged */
	__u16 ethertype; /* host order, ETH_P_IP or ETH_P_IPV6 */
	__u8 ip[16];
} __attribute__((aligned(4)));

/* Whether unicast frames to any MAC are taken. Set before the program is loaded. */
const volatile _Bool any_mac = 0;

/*
 * The MAC addresses of the interface; a VLAN interface's may differ from that below it. All
 * bits set: none. Written while frames come in: a half-written value matches no frame.
 */
volatile __u64 own_macs[2] = { ~0ULL, ~0ULL };

/* What an address in own_addresses is. */
enum role {
	NOBODY,
	OWN,	   /* one of the card's own */
	BROADCAST, /* of one of its subnets: no host has it */
};

/*
 * The card's own unicast addresses, and its subnets' broadcast addresses. They are in one
 * table, so that a source is looked up once.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct address);
	__type(value, __u8);
} own_addresses SEC(".maps");

/*
 * One own address of each IP version, compared before the lookup in the hash table: most
 * cards have no other. Entry 0 is for IPv4, 1 for IPv6; zero is no address.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct address);
} first_addresses SEC(".maps");

/*
 * One bit for each value of the last 16 bits of an address, set if an address in
 * own_addresses ends with them. For nearly all packets it shows that the source is not
 * ours, without a second hash lookup.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, (1 << 16) / 64);
	__type(key, __u32);
	__type(value, __u64);
} own_tails SEC(".maps");

/* Groups to which at least one queue pair of this card is attached. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct address);
	__type(value, __u8);
} groups SEC(".maps");

/*
 * The queue pairs that exist: one bit for each of the 2^24 numbers, 2 MiB. The table
 * is never full, and the JIT inlines the lookup, so that its cost does not depend on
 * the number of queue pairs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, (1 << QPN_BITS) / 64);
	__type(key, __u32);
	__type(value, __u64);
} queue_pairs SEC(".maps");

/* The AF_XDP socket of each receive queue. Sized when the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

static __always_inline int test_bit(void *bitmap, __u32 bit)
{
	__u32 word = bit / 64;
	__u64 *bits = bpf_map_lookup_elem(bitmap, &word);

	return bits && (*bits >> (bit % 64) & 1);
}

static __always_inline int is_same(const struct address *a, const struct address *b)
{
	const __u32 *x = (const void *)a, *y = (const void *)b;

	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3] && x[4] == y[4];
}

static __always_inline enum role role_of(const struct address *a)
{
	__u32 version = a->ethertype == ETH_P_IPV6;
	const struct address *first = bpf_map_lookup_elem(&first_addresses, &version);
	const __u8 *role;

	if (first && is_same(first, a))
		return OWN;
	role = bpf_map_lookup_elem(&own_addresses, a);
	return role ? *role : NOBODY;
}

static __always_inline int is_own_tail(__u16 tail)
{
	return test_bit(&own_tails, tail);
}

static __always_inline int is_attached_group(const struct address *a)
{
	return bpf_map_lookup_elem(&groups, a) != NULL;
}

static __always_inline int is_queue_pair(__u32 qpn)
{
	return test_bit(&queue_pairs, qpn);
}
