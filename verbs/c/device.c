/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"

struct ibv_context *context_open(const char *name, struct device *device);
int context_close(struct ibv_context *ibv);

/* rdma-core's provider libraries compare this with their own, to see whether a device is theirs. */
static const char our_ops[256];

static struct device *new_device(const struct roced_device_entry *entry, int number)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->entry = *entry;
	d->ops = our_ops;
	d->number = number;
	atomic_store(&d->users, 1);
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	memcpy(d->ibv.name, entry->name, sizeof(d->ibv.name));
	d->ibv.name[sizeof(d->ibv.name) - 1] = 0;
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "uverbs%d", number);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%d", number);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s", d->ibv.name);
	return d;
}

static void release(struct device *d)
{
	if (atomic_fetch_sub(&d->users, 1) == 1)
		free(d);
}

void ibv_free_device_list(struct ibv_device **list)
{
	for (size_t i = 0; list && list[i]; i++)
		release(OF(struct device, ibv, list[i]));
	free(list);
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct roced_device_entry *entries;
	size_t n = 0;
	int failed = roced_list_devices(&entries, &n);

	if (count)
		*count = 0;
	if (failed)
		return fail(failed);
	struct ibv_device **list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		struct device *d = new_device(&entries[i], (int)i);
		if (!d) {
			ibv_free_device_list(list);
			list = NULL;
			break;
		}
		list[i] = &d->ibv;
	}
	free(entries);
	if (list && count)
		*count = (int)n;
	return list ? list : fail(ENOMEM);
}

const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

be64 ibv_get_device_guid(struct ibv_device *device) { return htobe64(OF(struct device, ibv,
	device)->entry.node_guid); }

/* Programs use it only to compare devices. */
int ibv_get_device_index(struct ibv_device *device) { return OF(struct device, ibv, device)->number + 1; }

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return context_open(device->name, OF(struct device, ibv, device));
}

int ibv_close_device(struct ibv_context *context) { return context_close(context); }

struct ibv_context *roced_context_open(const char *name)
{
	struct ibv_context *context = NULL;
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (!list)
		return NULL;
	errno = ENODEV;
	for (int i = 0; i < count && !context; i++)
		if (!name || !*name || strcmp(list[i]->name, name) == 0) {
			context = ibv_open_device(list[i]);
			break;
		}
	int failed = errno;
	ibv_free_device_list(list);
	errno = failed;
	return context;
}

/* A device of another process, or of a descriptor that is passed: a session is one process's. */
struct ibv_context *ibv_import_device(int fd) { return fail(EOPNOTSUPP); }
