#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "sessions.h"

/* Asks what the device is. False if it has no card now. */
static bool look(struct link *l, const char *name, struct roced_device_entry *entry)
{
	struct roced_look_device_request r = { .from = 0 };
	struct roced_look_device_grant *g = calloc(1, ROCED_PROTO_MAX_MESSAGE);
	struct asked a = { .command = ROCED_LOOK_DEVICE, .request = &r, .request_len = sizeof(r), .grant = g, .cap = ROCED_PROTO_MAX_MESSAGE };

	if (!g)
		return false;
	memcpy(r.device, name, sizeof(r.device));
	bool there = link_ask(l, &a) == 0 && a.len >= sizeof(*g) && g->open;
	if (there) {
		memcpy(entry->name, name, sizeof(entry->name));
		entry->node_guid = g->node_guid;
		entry->sys_image_guid = g->sys_image_guid;
		entry->index = g->gids_count && g->gids[0].ifindex ? (int)g->gids[0].ifindex : -1;
	}
	free(g);
	return there;
}

int roced_list_devices(struct roced_device_entry **list, size_t *count)
{
	struct roced_hello_entry *names = NULL;
	struct link l;
	char why[256] = "";
	size_t named = 0;

	*count = 0;
	*list = calloc(1, sizeof(**list));
	int failed = *list ? link_connect(&l, &names, &named, why, sizeof(why)) : ENOMEM;
	if (failed) {
		roced_no_service(failed, why);
		return *list ? 0 : ENOMEM;
	}
	free(*list);
	*list = calloc(named + 1, sizeof(**list));
	for (size_t i = 0; *list && i < named; i++)
		*count += look(&l, names[i].name, &(*list)[*count]);
	free(names);
	link_close(&l);
	return *list ? 0 : ENOMEM;
}
