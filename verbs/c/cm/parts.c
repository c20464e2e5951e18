/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * An id consists of an id on each of its channel's devices, until an address or a route selects one. This file handles
 * the several devices. All errors are errnos; the callers hold the id's lock.
 */
#include <stdlib.h>
#include <string.h>

#include "cm.h"

/* cm_part_cmd runs a command on the id of one device. Each request starts with the id's handle. */
int cm_part_cmd(struct cm_part *part, uint16_t command, void *request, size_t len)
{
	memcpy(request, &part->handle, sizeof(part->handle));
	return roced_tell(part->device->session, command, request, len);
}

static int part_ask(struct cm_part *part, uint16_t command, void *request, size_t len, void *grant, size_t grant_len)
{
	memcpy(request, &part->handle, sizeof(part->handle));
	return roced_ask(part->device->session, command, request, len, grant, grant_len, NULL, NULL, NULL);
}

static void part_close(struct cm_part *part)
{
	struct roced_destroy_id_request r = { .id = part->handle };

	roced_release(part->device->session, ROCED_DESTROY_ID, &r, sizeof(r));
	cm_device_remove(part);
	free(part);
}

int cm_part_attach(struct cm_id *id, struct cm_device *device, uint32_t handle)
{
	struct cm_part *part = calloc(1, sizeof(*part));
	struct cm_part **grown = part ? realloc(id->parts, (size_t)(id->count + 1) * sizeof(part)) : NULL;

	if (!grown) {
		free(part);
		return ENOMEM;
	}
	part->device = device;
	part->handle = handle;
	part->id = id;
	id->parts = grown;
	id->parts[id->count++] = part;
	cm_device_enter(part);
	return 0;
}

static void lose(struct cm_id *id, int n)
{
	part_close(id->parts[n]);
	memmove(&id->parts[n], &id->parts[n + 1], (size_t)(id->count - n - 1) * sizeof(id->parts[0]));
	id->count--;
}

void cm_parts_close(struct cm_id *id)
{
	while (id->count > 0)
		lose(id, id->count - 1);
	free(id->parts);
	id->parts = NULL;
}

static int set_option(struct cm_part *part, int option, uint32_t value)
{
	struct roced_set_id_option_request r = { .option = (uint8_t)option, .value = value };

	return cm_part_cmd(part, ROCED_SET_ID_OPTION, &r, sizeof(r));
}

/*
 * The service has the port spaces of IP. A program of XRC names InfiniBand's (rdma_xclient(1)), which is TCP's here: its
 * addresses are of IP too.
 */
static uint16_t space_of(const struct cm_id *id)
{
	bool xrc = id->kind == ROCED_QPT_XRC_SEND || id->kind == ROCED_QPT_XRC_RECV;

	return (uint16_t)(xrc && id->id.ps == RDMA_PS_IB ? RDMA_PS_TCP : id->id.ps);
}

static int open_on(struct cm_id *id, const struct cm_source *source)
{
	struct roced_create_id_request r = { .channel = source->channel, .port_space = space_of(id), .qp_type = id->kind };
	struct roced_create_id_grant grant;
	int n, error = roced_ask_simple(source->device->session, ROCED_CREATE_ID, &r, &grant);

	if (error)
		return error;
	error = cm_part_attach(id, source->device, grant.id);
	for (n = 0; !error && n < CM_OPTIONS; n++)
		if (id->options[n].is_set)
			error = set_option(id->parts[id->count - 1], n, id->options[n].value);
	return error;
}

/* cm_parts_open makes the id on all devices of its channel that are there, with the options that were set. */
int cm_parts_open(struct cm_id *id)
{
	struct cm_channel *c = cm_channel_of(id->id.channel);
	int n, error = ENODEV;

	for (n = 0; n < c->count; n++) {
		if (cm_device_gone(c->sources[n].device))
			continue;
		error = open_on(id, &c->sources[n]);
		if (error && !cm_device_gone(c->sources[n].device)) {
			cm_parts_close(id);
			return error;
		}
	}
	return id->count > 0 ? 0 : error;
}

/* settle removes the id from all other devices. */
static void settle(struct cm_id *id, const struct cm_part *on)
{
	int n;

	for (n = id->count - 1; n >= 0; n--)
		if (id->parts[n] != on)
			lose(id, n);
}

int cm_one(struct cm_id *id, struct cm_part **part)
{
	if (id->count != 1)
		return EINVAL; /* not bound to one of its devices */
	*part = id->parts[0];
	return 0;
}

/* cm_parts_cmd runs a command on the id on all devices. It drops removed devices while others remain. */
int cm_parts_cmd(struct cm_id *id, uint16_t command, void *request, size_t len)
{
	int n = 0, error = id->count > 0 ? 0 : ENODEV;

	while (n < id->count) {
		error = cm_part_cmd(id->parts[n], command, request, len);
		if (error && cm_device_gone(id->parts[n]->device) && id->count > 1)
			lose(id, n);
		else if (error)
			return error;
		else
			n++;
	}
	return error;
}

/* cm_query queries the first live device: while the id is on several, all return the same. */
int cm_query(struct cm_id *id, struct roced_query_id_grant *grant)
{
	struct roced_query_id_request r = { 0 };
	int n, error = ENODEV;

	for (n = 0; n < id->count; n++) {
		error = part_ask(id->parts[n], ROCED_QUERY_ID, &r, sizeof(r), grant, sizeof(*grant));
		if (!error || !cm_device_gone(id->parts[n]->device))
			break;
	}
	return error;
}

static int bind_part(struct cm_id *id, struct cm_part *part, struct roced_addr_port *to, bool shared)
{
	struct roced_bind_id_request r = { .shared = shared, .whose = id->number, .addr = *to };
	struct roced_bind_id_grant grant;
	int error;

	error = part_ask(part, ROCED_BIND_ID, &r, sizeof(r), &grant, sizeof(grant));
	if (!error)
		*to = grant.addr;
	return error;
}

/*
 * bind_all binds to all addresses, with one port on all devices. Devices of one network namespace share it. If it
 * cannot be had on one of them, the id is as it was before.
 */
static int bind_all(struct cm_id *id, struct roced_addr_port to)
{
	int n, error = 0;

	for (n = 0; n < id->count; n++) {
		error = bind_part(id, id->parts[n], &to, n > 0);
		if (n > 0 && error == EADDRNOTAVAIL)
			error = bind_part(id, id->parts[n], &to, false);
		if (error && n > 0) {
			cm_parts_close(id);
			cm_parts_open(id);
		}
		if (error)
			return error;
	}
	return n > 0 ? 0 : ENODEV;
}

static bool is_up(const struct cm_part *part)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	return ibv_query_port(part->device->verbs, 1, &port) == 0 && port.state == ROCED_PORT_ACTIVE;
}

/*
 * in_order sorts the id's parts for a search of an address: a loopback address is on the first device whose port is up,
 * as in the kernel.
 */
static void in_order(struct cm_id *id, const struct roced_addr_port *a)
{
	int n;

	if (id->count < 2 || !cm_address_loopback(a))
		return;
	for (n = 0; n < id->count; n++)
		if (is_up(id->parts[n])) {
			struct cm_part *first = id->parts[n];
			memmove(&id->parts[1], &id->parts[0], (size_t)n * sizeof(first));
			id->parts[0] = first;
			return;
		}
}

/* cm_bind binds to all addresses, or to an address of one of the devices, which also selects the device. */
int cm_bind(struct cm_id *id, const struct roced_addr_port *to)
{
	int n, error = ENODEV;

	if (cm_address_any(to))
		return bind_all(id, *to);
	in_order(id, to);
	for (n = 0; n < id->count; n++) {
		struct roced_addr_port own = *to;
		error = bind_part(id, id->parts[n], &own, false);
		if (!error) {
			settle(id, id->parts[n]);
			return 0;
		}
		if (error != EADDRNOTAVAIL) /* else it may be another device's */
			return error;
	}
	return error;
}

static int find_route(struct cm_part *part, const struct roced_addr_port *source, const struct roced_addr_port *dest)
{
	struct roced_find_route_request r = { .source = *source, .dest = *dest };
	struct roced_find_route_grant grant;

	r.source.port = r.dest.port = 0;
	return roced_ask_simple(part->device->session, ROCED_FIND_ROUTE, &r, &grant);
}

/* owner returns the part on the device that owns the destination address, which is reached without a wire. */
static struct cm_part *owner(struct cm_id *id, const struct roced_addr_port *source, const struct roced_addr_port *dest)
{
	int n;

	if ((source->family != 0 && !cm_address_any(source)) || cm_address_any(dest) || cm_address_multicast(dest) ||
	    cm_address_loopback(dest))
		return NULL;
	for (n = 0; n < id->count; n++)
		if (find_route(id->parts[n], dest, dest) == 0)
			return id->parts[n];
	return NULL;
}

/* cm_choose settles on the device by which the host reaches a destination. */
int cm_choose(struct cm_id *id, const struct roced_addr_port *source, const struct roced_addr_port *dest, struct cm_part **part)
{
	int n, error = 0;

	if (id->count < 2) {
		error = cm_one(id, part);
		return error ? ENODEV : 0;
	}
	*part = owner(id, source, dest);
	in_order(id, dest);
	for (n = 0; !*part && n < id->count; n++) {
		error = find_route(id->parts[n], source, dest);
		if (!error)
			*part = id->parts[n];
	}
	if (!*part)
		return error;
	settle(id, *part);
	return 0;
}
