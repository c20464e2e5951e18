/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "sessions.h"

/* The devices that have a card now, as the service lists them. */
static int ask_list(struct link *l, struct roced_device_entry **list, size_t *count)
{
	struct roced_list_devices_grant *g = calloc(1, ROCED_PROTO_MAX_MESSAGE);
	struct asked a = { .command = ROCED_LIST_DEVICES, .grant = g, .cap = ROCED_PROTO_MAX_MESSAGE };
	int failed = g ? link_ask(l, &a) : ENOMEM;

	if (!failed && (a.len < sizeof(*g) || a.len != sizeof(*g) + g->devices_count * sizeof(g->devices[0])))
		failed = EPROTO;
	size_t n = failed ? 0 : g->devices_count;
	*list = failed ? NULL : calloc(n + 1, sizeof(**list));
	for (size_t i = 0; *list && i < n; i++) {
		struct roced_device_entry *entry = &(*list)[i];
		memcpy(entry->name, g->devices[i].name, sizeof(entry->name));
		entry->node_guid = g->devices[i].node_guid;
		entry->sys_image_guid = g->devices[i].sys_image_guid;
	}
	*count = *list ? n : 0;
	free(g);
	return failed ? failed : *list ? 0 : ENOMEM;
}

int roced_list_devices(struct roced_device_entry **list, size_t *count)
{
	struct roced_hello_entry *names = NULL;
	struct link l;
	char why[256] = "";
	size_t named = 0;
	int failed = link_connect(&l, &names, &named, why, sizeof(why));

	if (!failed) {
		free(names);
		failed = ask_list(&l, list, count);
		link_close(&l);
		return failed;
	}
	roced_no_service(failed, why);
	*count = 0;
	*list = calloc(1, sizeof(**list));
	return *list ? 0 : ENOMEM;
}
