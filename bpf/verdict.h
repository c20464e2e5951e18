/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <linux/bpf.h>

/*
 * What happened to a packet, and why. Each packet ends in exactly one of these,
 * and each has one counter. Go reads this enum from the object's BTF, and shows
 * these names in lower case.
 *
 * A check in steer.bpf.c returns REDIRECTED, which is zero, if the packet passes
 * the check.
 */
enum verdict {
	REDIRECTED,

	PASS_NOT_ROCE, /* not IP, not UDP, not port 4791, or too short to tell */
	PASS_VLAN,     /* not in the card's VLAN */
	PASS_FRAGMENT, /* a fragment of an IP packet */
	PASS_NOT_OWN,  /* to a unicast address that is not ours */
	PASS_GROUP,    /* to a group without a queue pair of this card */
	PASS_OTHER_HOST, /* to our address, or a group, but to another host's MAC */

	DROP_OPTIONS,	       /* IPv4 header with options */
	DROP_TRUNCATED,	       /* the frame ends before the packet or its headers */
	DROP_LENGTH,	       /* IP and UDP lengths disagree, or hold no headers */
	DROP_MULTICAST_SOURCE, /* the source is a group */
	DROP_MARTIAN_SOURCE,   /* no host can have the source address */
	DROP_OWN_SOURCE,       /* our own packet, reflected by a switch or bridge */
	DROP_GROUP_QPN,	       /* to a group, but not to QPN 0xFFFFFF */
	DROP_UNKNOWN_QP,       /* no such queue pair */
	DROP_NO_RING,	       /* no AF_XDP socket on the receiving queue */
	DROP_REDIRECT,	       /* the kernel could not redirect it: redirect.bpf.c */

	VERDICTS,
};

static __always_inline enum xdp_action action(enum verdict verdict)
{
	switch (verdict) {
	case REDIRECTED:
		return XDP_REDIRECT;
	case PASS_NOT_ROCE:
	case PASS_VLAN:
	case PASS_FRAGMENT:
	case PASS_NOT_OWN:
	case PASS_GROUP:
	case PASS_OTHER_HOST:
		return XDP_PASS;
	default:
		return XDP_DROP;
	}
}
