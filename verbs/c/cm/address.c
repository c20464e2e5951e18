/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Addresses: those of programs (sockaddr, also of family AF_IB) and those of the service. */
#include <arpa/inet.h>
#include <endian.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

/* An address of InfiniBand's family (sockaddr_ib). On Ethernet its GID is an IP address, its service id a port. */
struct sockaddr_ib {
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t addr[16];
	uint64_t sid;
	uint64_t sid_mask;
	uint64_t scope_id;
};

enum { CM_AF_IB = 27 };

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool is_link_local(const uint8_t *bytes) { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

static void set_zone(struct roced_addr_port *to, uint32_t scope)
{
	char name[IF_NAMESIZE];

	if (scope != 0 && if_indextoname(scope, name))
		memcpy(to->zone, name, strlen(name) + 1);
}

static int from_ib(struct roced_addr_port *to, const struct sockaddr_ib *from, enum rdma_port_space ps)
{
	uint64_t mask = from->sid_mask ? be64toh(from->sid_mask) : ~0ull;
	uint64_t sid = be64toh(from->sid);

	if (((sid >> 16) & (mask >> 16)) != ((uint64_t)ps & (mask >> 16)))
		return EPROTONOSUPPORT;
	if (from->pkey != 0 && (ntohs(from->pkey) & 0x7fff) != 0x7fff)
		return EINVAL;
	to->port = (uint16_t)(sid & mask);
	if (memcmp(from->addr, mapped, sizeof(mapped)) == 0) {
		to->family = 4;
		memcpy(to->addr, from->addr + 12, 4);
		return 0;
	}
	to->family = 6;
	memcpy(to->addr, from->addr, 16);
	return 0;
}

int cm_address_from(struct roced_addr_port *to, const struct sockaddr *from, enum rdma_port_space ps)
{
	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	if (from->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;
		to->family = 4;
		to->port = ntohs(in->sin_port);
		memcpy(to->addr, &in->sin_addr, 4);
		return 0;
	}
	if (from->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
		to->family = 6;
		to->port = ntohs(in->sin6_port);
		memcpy(to->addr, &in->sin6_addr, 16);
		if (is_link_local(to->addr) || to->addr[0] == 0xff)
			set_zone(to, in->sin6_scope_id);
		return 0;
	}
	if (from->sa_family == CM_AF_IB)
		return from_ib(to, (const struct sockaddr_ib *)from, ps);
	return EINVAL; /* as in librdmacm, which has no length for it */
}

void cm_address_to(struct sockaddr_storage *to, const struct roced_addr_port *from)
{
	memset(to, 0, sizeof(*to));
	if (from->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;
		in->sin_family = AF_INET;
		in->sin_port = htons(from->port);
		memcpy(&in->sin_addr, from->addr, 4);
	} else if (from->family == 6) {
		struct sockaddr_in6 *in = (struct sockaddr_in6 *)to;
		in->sin6_family = AF_INET6;
		in->sin6_port = htons(from->port);
		memcpy(&in->sin6_addr, from->addr, 16);
		if (from->zone[0] != 0 && memchr(from->zone, 0, sizeof(from->zone)))
			in->sin6_scope_id = if_nametoindex(from->zone);
	}
}

static bool is_mapped(const struct roced_addr_port *a)
{
	return a->family == 6 && memcmp(a->addr, mapped, sizeof(mapped)) == 0;
}

bool cm_address_any(const struct roced_addr_port *a)
{
	static const uint8_t zero[16];

	if (is_mapped(a))
		return memcmp(a->addr + 12, zero, 4) == 0;
	return a->family != 0 && memcmp(a->addr, zero, 16) == 0;
}

bool cm_address_loopback(const struct roced_addr_port *a)
{
	static const uint8_t one[16] = { [15] = 1 };

	if (a->family == 4)
		return a->addr[0] == 127;
	return a->family == 6 && (memcmp(a->addr, one, 16) == 0 || (is_mapped(a) && a->addr[12] == 127));
}

bool cm_address_multicast(const struct roced_addr_port *a)
{
	if (a->family == 4)
		return (a->addr[0] & 0xf0) == 0xe0;
	return a->family == 6 && a->addr[0] == 0xff;
}
