/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "objects.h"

static bool stale(struct context *c, const void *record)
{
	pthread_mutex_lock(&c->mu);
	bool gone = !context_named(c, *(const uint64_t *)record, OF_CQ);
	pthread_mutex_unlock(&c->mu);
	return gone;
}

/* A completion channel: a stream of records of 8 bytes, the event ids of CQs. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct roced_create_comp_channel_grant g;
	struct channel *ch = calloc(1, sizeof(*ch));
	int fd = -1, count = 1;
	int failed = ch ? roced_ask(context_of(context)->session, ROCED_CREATE_COMP_CHANNEL, NULL, 0, &g,
		sizeof(g), NULL, &fd, &count) : ENOMEM;

	if (!failed && count != 1)
		failed = EPROTO;
	if (failed) {
		free(ch);
		return fail(failed);
	}
	int flags = fcntl(fd, F_GETFL); /* blocking, unless the program has set O_NONBLOCK */
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	ch->ibv.context = context;
	ch->ibv.fd = fd;
	ch->handle = g.channel;
	records_init(&ch->events, sizeof(uint64_t), stale);
	return &ch->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct channel *ch = OF(struct channel, ibv, ibv);
	struct context *c = context_of(ibv->context);
	struct roced_destroy_comp_channel_request r = { .channel = ch->handle };

	int failed = 0;
	if (!forked(c)) {
		pthread_mutex_lock(&ibv->context->mutex);
		failed = result(ibv->refcnt ? EBUSY : 0);
		pthread_mutex_unlock(&ibv->context->mutex);
	}
	if (!failed)
		failed = roced_release(c->session, ROCED_DESTROY_COMP_CHANNEL, &r, sizeof(r));
	if (failed)
		return failed;
	close(ibv->fd);
	free(ch);
	return 0;
}

/* Returns the CQ of an event and counts the event; NULL if the CQ was destroyed. */
static struct cq *event_of(struct context *c, uint64_t id)
{
	pthread_mutex_lock(&c->mu);
	struct cq *cq = context_named(c, id, OF_CQ);
	if (cq) {
		pthread_mutex_lock(&cq->ibv.mutex);
		cq->comp_got++;
		pthread_mutex_unlock(&cq->ibv.mutex);
	}
	pthread_mutex_unlock(&c->mu);
	return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ibv, void **cq_context)
{
	struct context *c = context_of(channel->context);
	struct cq *cq = NULL;

	if (forked(c)) {
		errno = EIO; /* pending events are the parent's */
		return -1;
	}
	while (!cq) {
		uint64_t id;
		ssize_t n = records_read(&OF(struct channel, ibv, channel)->events, c, channel->fd, &id);
		if (n == 0)
			errno = EIO; /* the service has ended */
		if (n != sizeof(id))
			return -1;
		cq = event_of(c, id);
	}
	*ibv = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
