/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Buffers that the peer may write into directly: riomap, and riowrite into the peer's. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rsapi.h"
#include "rsocket.h"

void rs_unmap_all(struct rsocket *s)
{
	struct rs_mapping *m;

	while ((m = s->mappings)) {
		s->mappings = m->next;
		ibv_dereg_mr(m->mr);
		free(m);
	}
}

/* place_for finds a free entry in the peer's table, or returns -1. */
static int place_for(const struct rsocket *s)
{
	const struct rs_mapping *m;
	int place;

	for (place = 0; place < (int)s->remote_iomap.length; place++) {
		for (m = s->mappings; m && m->index != place; m = m->next)
			;
		if (!m)
			return place;
	}
	return -1;
}

/* tell writes a mapping into the peer's table. */
static int tell(struct rsocket *s, const struct rs_mapping *m, int place)
{
	struct rs_iomap map = { .offset = (uint64_t)m->offset, .sge = { (uintptr_t)m->addr, m->mr->rkey, (uint32_t)m->length } };

	if (s->swap) {
		map.offset = __builtin_bswap64(map.offset);
		map.sge.addr = __builtin_bswap64(map.sge.addr);
		map.sge.key = __builtin_bswap32(map.sge.key);
		map.sge.length = __builtin_bswap32(map.sge.length);
	}
	return rs_post(s, RS_OP_IOMAP_SGL, rs_message(RS_OP_IOMAP_SGL, 0), &map, sizeof(map),
		s->remote_iomap.addr + (uint64_t)place * sizeof(map), s->remote_iomap.key);
}

/* rs_send_mappings sends new mappings to the peer. */
void rs_send_mappings(struct rsocket *s)
{
	struct rs_mapping *m;

	for (m = s->mappings; m; m = m->next) {
		int place;

		if (m->index >= 0 || m->offset < 0 || s->controls_free == 0)
			continue;
		place = place_for(s);
		if (place >= 0 && tell(s, m, place) == 0)
			m->index = place;
	}
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct rs_mapping *m;
	int access = ROCED_ACCESS_LOCAL_WRITE;

	if (!s)
		return -1;
	if (s->datagram)
		return cm_result(EOPNOTSUPP);
	if (!s->id->pd || (prot & ~(PROT_WRITE | PROT_NONE)))
		return cm_result(EINVAL);
	m = calloc(1, sizeof(*m));
	if (!m)
		return cm_result(ENOMEM);
	if (prot & PROT_WRITE)
		access |= ROCED_ACCESS_REMOTE_WRITE;
	m->mr = ibv_reg_mr(s->id->pd, buf, len, access);
	if (!m->mr) {
		free(m);
		return -1;
	}
	m->addr = buf;
	m->length = len;
	m->index = -1;
	m->offset = !(prot & PROT_WRITE) ? -1 : offset == -1 ? (off_t)(uintptr_t)buf : offset;
	pthread_mutex_lock(&s->lock);
	m->next = s->mappings;
	s->mappings = m;
	if (s->state == RS_CONNECTED)
		rs_send_mappings(s);
	pthread_mutex_unlock(&s->lock);
	return m->offset == -1 ? (off_t)(uintptr_t)buf : m->offset;
}

int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct rs_mapping **at, *m;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	for (at = &s->mappings; *at && ((*at)->addr != buf || (*at)->length != len); at = &(*at)->next)
		;
	m = *at;
	if (m)
		*at = m->next;
	pthread_mutex_unlock(&s->lock);
	if (!m)
		return cm_result(EINVAL);
	ibv_dereg_mr(m->mr);
	free(m);
	return 0;
}

static bool can_write(struct rsocket *s)
{
	return s->state != RS_CONNECTED || (s->sqe_free > 0 && s->sbuf_free > 0);
}

/* find finds the peer's mapping of an offset. It pairs with writeEnd of datapath/conn/message.go, as rs_can_send does. */
static bool find(struct rsocket *s, uint64_t offset, struct rs_sge *to)
{
	uint32_t n;

	for (n = 0; n < s->iomap_size; n++) {
		const struct rs_iomap *place = &rs_iomaps(s)[n];
		struct rs_iomap map;

		if (__atomic_load_n(&place->sge.length, __ATOMIC_ACQUIRE) == 0) /* the rest is there before it */
			continue;
		map = *(const volatile struct rs_iomap *)place;
		if (offset >= map.offset && offset - map.offset < map.sge.length) {
			uint32_t in = (uint32_t)(offset - map.offset);
			*to = (struct rs_sge){ map.sge.addr + in, map.sge.key, map.sge.length - in };
			return true;
		}
	}
	return false;
}

static int write_some(struct rsocket *s, const void *data, size_t len, const struct rs_sge *to, uint32_t *written)
{
	uint32_t n = len > RS_MAX_TRANSFER ? RS_MAX_TRANSFER : (uint32_t)len;
	bool copied;
	int error;

	if (n > to->length)
		n = to->length;
	copied = n > s->inline_size;
	if (copied) {
		if (n > s->sbuf_free)
			n = s->sbuf_free;
		if (n > s->sbuf_size - s->sbuf_at)
			n = s->sbuf_size - s->sbuf_at;
		memcpy(s->sbuf + s->sbuf_at, data, n);
		data = s->sbuf + s->sbuf_at;
	}
	error = rs_post(s, RS_OP_WRITE, 0, data, n, to->addr, to->key);
	if (!error && copied) {
		s->sbuf_free -= n;
		s->sbuf_at = (s->sbuf_at + n) % s->sbuf_size;
	}
	*written = error ? 0 : n;
	return error;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	size_t done = 0;
	int error = 0;

	if (!s)
		return (size_t)-1;
	if (s->datagram)
		return (size_t)cm_result(EOPNOTSUPP);
	pthread_mutex_lock(&s->lock);
	while (done < count && !error) {
		struct rs_sge to;
		uint32_t n = 0;

		error = rs_wait(s, can_write, flags, s->timeout.send);
		if (!error && s->state != RS_CONNECTED)
			error = ECONNRESET;
		if (!error && !find(s, (uint64_t)offset + done, &to))
			error = EINVAL;
		if (!error)
			error = write_some(s, (const uint8_t *)buf + done, count - done, &to, &n);
		done += n;
	}
	pthread_mutex_unlock(&s->lock);
	return done > 0 || !error ? done : (size_t)cm_result(error);
}
