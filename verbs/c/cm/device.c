/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* The service's devices. They are opened with the first id and stay open. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct cm_device *devices; /* includes removed devices, which ids may still use */

/* The locks are free in the child of a fork. */
static void before_fork(void) { pthread_mutex_lock(&opening); }
static void in_parent(void) { pthread_mutex_unlock(&opening); }
static void in_child(void)
{
	struct cm_device *d;

	for (d = devices; d; d = d->next)
		pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_unlock(&opening);
}
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

bool cm_device_gone(const struct cm_device *device) { return atomic_load(&device->session->gone) != ROCED_THERE; }

static struct cm_device *open_device(const char *name)
{
	struct cm_device *d;

	for (d = devices; d; d = d->next)
		if (strcmp(d->name, name) == 0 && !cm_device_gone(d))
			return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->verbs = roced_context_open(name);
	if (!d->verbs) {
		free(d);
		return NULL;
	}
	d->session = roced_session_of(d->verbs);
	memcpy(d->name, name, strnlen(name, sizeof(d->name) - 1));
	pthread_mutex_init(&d->lock, NULL);
	d->next = devices;
	devices = d;
	return d;
}

int cm_devices_open(struct cm_device ***list, int *count)
{
	struct roced_device_entry *entries;
	size_t n, i;
	int error = roced_list_devices(&entries, &n);

	*count = 0;
	*list = NULL;
	if (error)
		return error;
	*list = calloc(n + 1, sizeof(**list));
	pthread_mutex_lock(&opening);
	for (i = 0; *list && i < n; i++) {
		struct cm_device *d = open_device(entries[i].name);
		if (d)
			(*list)[(*count)++] = d;
		else
			error = errno;
	}
	pthread_mutex_unlock(&opening);
	free(entries);
	if (*count > 0)
		return 0;
	if (!*list)
		return ENOMEM;
	free(*list);
	return error ? error : ENODEV;
}

int cm_device_pd(struct cm_device *device, struct ibv_pd **pd)
{
	pthread_mutex_lock(&device->lock);
	if (!device->pd)
		device->pd = ibv_alloc_pd(device->verbs);
	*pd = device->pd;
	pthread_mutex_unlock(&device->lock);
	return *pd ? 0 : errno;
}

/* cm_device_xrcd is the default XRC domain: one that no other program has. */
int cm_device_xrcd(struct cm_device *device, struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_FD | IBV_XRCD_INIT_OFLAGS, .fd = -1, .oflags = O_CREAT };
	struct verbs_context *ex = cm_extended(device->verbs);

	pthread_mutex_lock(&device->lock);
	if (!device->xrcd)
		device->xrcd = ex->open_xrcd(device->verbs, &attr);
	*xrcd = device->xrcd;
	pthread_mutex_unlock(&device->lock);
	return *xrcd ? 0 : errno;
}

/* cm_devices_exist is 0 if there is a device, else ENODEV. */
int cm_devices_exist(void)
{
	struct roced_device_entry *entries;
	struct cm_device *d;
	size_t n = 0;
	int error;

	pthread_mutex_lock(&opening);
	for (d = devices; d && cm_device_gone(d); d = d->next)
		;
	pthread_mutex_unlock(&opening);
	if (d)
		return 0;
	error = roced_list_devices(&entries, &n);
	if (error)
		return error;
	free(entries);
	return n > 0 ? 0 : ENODEV;
}

static struct cm_part **bucket(struct cm_device *device, uint32_t handle)
{
	return &device->parts[handle % CM_PART_BUCKETS];
}

void cm_device_enter(struct cm_part *part)
{
	struct cm_part **at = bucket(part->device, part->handle);

	pthread_mutex_lock(&part->device->lock);
	part->next = *at;
	*at = part;
	pthread_mutex_unlock(&part->device->lock);
}

void cm_device_remove(struct cm_part *part)
{
	struct cm_part **at = bucket(part->device, part->handle);

	pthread_mutex_lock(&part->device->lock);
	while (*at && *at != part)
		at = &(*at)->next;
	if (*at)
		*at = part->next;
	pthread_mutex_unlock(&part->device->lock);
}

/* cm_device_find finds the id with a handle, for an event, and counts the event; NULL if it was destroyed just now. */
struct cm_id *cm_device_find(struct cm_device *device, uint32_t handle)
{
	struct cm_part *part;
	struct cm_id *id = NULL;

	pthread_mutex_lock(&device->lock);
	for (part = *bucket(device, handle); part && !id; part = part->next)
		if (part->handle == handle)
			id = part->id;
	if (id)
		cm_event_count(id);
	pthread_mutex_unlock(&device->lock);
	return id;
}

/* cm_device_notified records that a device's removal was reported to an id. */
void cm_device_notified(struct cm_device *device, uint32_t handle)
{
	struct cm_part *part;

	pthread_mutex_lock(&device->lock);
	for (part = *bucket(device, handle); part; part = part->next)
		if (part->handle == handle)
			part->told = true;
	pthread_mutex_unlock(&device->lock);
}

/*
 * cm_device_orphaned returns an id of the channel on a removed device to which the removal was not reported, each
 * once. The service reports the removal, but the report may be lost with the connection.
 */
struct cm_id *cm_device_orphaned(struct cm_device *device, const struct rdma_event_channel *channel)
{
	struct cm_id *id = NULL;
	struct cm_part *part;
	int n;

	pthread_mutex_lock(&device->lock);
	for (n = 0; n < CM_PART_BUCKETS && !id; n++)
		for (part = device->parts[n]; part && !id; part = part->next)
			if (!part->told && part->id->id.verbs && part->id->id.channel == channel) {
				part->told = true;
				id = part->id;
				cm_event_count(id);
			}
	pthread_mutex_unlock(&device->lock);
	return id;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list;
	struct cm_device **all;
	int count, n, error = cm_devices_open(&all, &count);

	if (num_devices)
		*num_devices = 0;
	if (error) {
		errno = error;
		return NULL;
	}
	list = calloc((size_t)count + 1, sizeof(*list));
	for (n = 0; list && n < count; n++)
		list[n] = all[n]->verbs;
	free(all);
	if (list && num_devices)
		*num_devices = count;
	return list;
}

void rdma_free_devices(struct ibv_context **list) { free(list); }
