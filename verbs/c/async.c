/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "objects.h"

/* The counters of an object's events: its mutex, and the numbers of events returned and acknowledged. */
struct counts {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *got, *completed;
};

static enum kind kind_of(int type)
{
	switch (type) {
	case ROCED_EVENT_CQ_ERR:
		return OF_CQ;
	case ROCED_EVENT_QP_FATAL:
	case ROCED_EVENT_QP_REQ_ERR:
	case ROCED_EVENT_QP_ACCESS_ERR:
	case ROCED_EVENT_COMM_EST:
	case ROCED_EVENT_SQ_DRAINED:
	case ROCED_EVENT_PATH_MIG:
	case ROCED_EVENT_PATH_MIG_ERR:
	case ROCED_EVENT_QP_LAST_WQE_REACHED:
		return OF_QP;
	case ROCED_EVENT_SRQ_ERR:
	case ROCED_EVENT_SRQ_LIMIT_REACHED:
		return OF_SRQ;
	}
	return NO_OBJECT;
}

static bool counts_of(const struct ibv_async_event *e, struct counts *c)
{
	switch (kind_of(e->event_type)) {
	case OF_CQ: {
		struct cq *cq = OF(struct cq, ibv, e->element.cq);
		*c = (struct counts){ &cq->ibv.mutex, &cq->ibv.cond, &cq->async_got, &cq->ibv.async_events_completed };
		return true;
	}
	case OF_QP: {
		struct qp *qp = qp_of(e->element.qp);
		*c = (struct counts){ &e->element.qp->mutex, &e->element.qp->cond, &qp->async_got,
			&e->element.qp->events_completed };
		return true;
	}
	case OF_SRQ: {
		struct srq *srq = OF(struct srq, ibv, e->element.srq);
		*c = (struct counts){ &srq->ibv.mutex, &srq->ibv.cond, &srq->async_got, &srq->ibv.events_completed };
		return true;
	}
	case NO_OBJECT:
		break;
	}
	return false;
}

/*
 * fill fills in an event of an object (CQs, QPs and SRQs start with the program's structure) or of the port.
 * It returns false if the object was destroyed.
 */
static bool fill(struct context *c, const struct roced_get_async_event_grant *g,
	struct ibv_async_event *event)
{
	struct counts at;
	bool there = true;

	event->event_type = g->type;
	pthread_mutex_lock(&c->mu);
	if (kind_of(g->type) != NO_OBJECT) {
		event->element.any = context_named(c, g->event_id, kind_of(g->type));
		there = event->element.any != NULL;
		if (there && counts_of(event, &at)) {
			pthread_mutex_lock(at.mutex);
			(*at.got)++;
			pthread_mutex_unlock(at.mutex);
		}
	} else {
		event->element.any = NULL;
		event->element.port_num = g->port ? g->port : 1;
	}
	pthread_mutex_unlock(&c->mu);
	return there;
}

static bool stale(struct context *c, const void *record)
{
	const struct roced_get_async_event_grant *g = record;

	if (kind_of(g->type) == NO_OBJECT)
		return false;
	pthread_mutex_lock(&c->mu);
	bool gone = !context_named(c, g->event_id, kind_of(g->type));
	pthread_mutex_unlock(&c->mu);
	return gone;
}

/* The event ids of its objects. */
static struct roced_open_async_events_request range_of(const struct opened *o)
{
	return (struct roced_open_async_events_request){ .first = o->number << EVENT_ID_SHIFT,
		.last = ((o->number + 1) << EVENT_ID_SHIFT) - 1 };
}

/* Opens async_fd. An older service has none: then it is never readable. */
int async_open(struct opened *o)
{
	struct roced_open_async_events_request r = range_of(o);
	int count = 1, fd = -1;
	int failed = roced_ask(o->shared->session, ROCED_OPEN_ASYNC_EVENTS, &r, sizeof(r), NULL, 0, NULL, &fd, &count);

	records_init(&o->events, sizeof(struct roced_get_async_event_grant), stale);
	if (!failed && count == 1) {
		int flags = fcntl(fd, F_GETFL);
		if (flags >= 0)
			fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
		o->v.context.async_fd = fd;
		return 0;
	}
	if (failed != EOPNOTSUPP)
		return failed ? failed : EPROTO;
	o->silent = true;
	o->v.context.async_fd = eventfd(0, EFD_CLOEXEC);
	return o->v.context.async_fd < 0 ? errno : 0;
}

void async_close(struct opened *o)
{
	struct roced_open_async_events_request r = range_of(o);

	if (o->v.context.async_fd < 0)
		return;
	close(o->v.context.async_fd);
	if (!o->silent && !forked(o->shared))
		roced_release(o->shared->session, ROCED_CLOSE_ASYNC_EVENTS, &r, sizeof(r));
}

void async_clear(struct ibv_context *ibv)
{
	struct opened *o = opened_of(ibv);

	if (!o->silent)
		records_clear(&o->events, o->shared, ibv->async_fd);
}

/* Returns the fatal event, once per context. */
static int fatal(struct opened *o, struct ibv_async_event *event)
{
	if (atomic_exchange(&o->fatal_told, true)) {
		errno = EIO;
		return -1;
	}
	event->element.any = NULL;
	event->event_type = ROCED_EVENT_DEVICE_FATAL;
	return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct opened *o = opened_of(context);
	struct context *c = o->shared;
	struct roced_get_async_event_grant g;

	if (forked(c)) {
		errno = EIO; /* pending events are the parent's */
		return -1;
	}
	do {
		ssize_t n = o->silent ? -1 : records_read(&o->events, c, context->async_fd, &g);
		if (o->silent)
			errno = EOPNOTSUPP;
		if (n == 0)
			return fatal(o, event); /* the service has ended */
		if (n != sizeof(g))
			return -1;
		if (g.type == ROCED_EVENT_DEVICE_FATAL)
			o->fatal_told = true;
	} while (!fill(c, &g, event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct counts at;

	if (event->element.any == NULL || !counts_of(event, &at))
		return;
	pthread_mutex_lock(at.mutex);
	(*at.completed)++;
	pthread_cond_signal(at.cond);
	pthread_mutex_unlock(at.mutex);
}
