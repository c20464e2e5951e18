#define _GNU_SOURCE
/*
 * The numbers of sockets. A number is a descriptor: that of the socket's event channel. A socket stays as long as the table or
 * a call holds it.
 */
#include <stdlib.h>
#include <string.h>

#include "rsocket.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rsocket **table; /* by number */
static int table_size;

/*
 * The child of a fork finds locks free and sockets held by the table alone, whatever other threads did: those that wait for
 * the lock are counted in it.
 */
static void before_fork(void) { pthread_rwlock_wrlock(&table_lock); }
static void in_parent(void) { pthread_rwlock_unlock(&table_lock); }
static void in_child(void)
{
	int n;

	table_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	for (n = 0; n < table_size; n++)
		if (table[n])
			rs_revive(table[n]);
}
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* rs_find is the socket with a number, held for the caller; NULL with EBADF if it is none. */
struct rsocket *rs_find(int fd)
{
	struct rsocket *s = NULL;

	pthread_rwlock_rdlock(&table_lock);
	if (fd >= 0 && fd < table_size)
		s = table[fd];
	if (s)
		s->holders++;
	pthread_rwlock_unlock(&table_lock);
	if (!s)
		errno = EBADF;
	return s;
}

/* rs_enter puts a socket into the table, which holds it. */
int rs_enter(struct rsocket *s)
{
	struct rsocket **grown;
	int size, error = 0;

	pthread_rwlock_wrlock(&table_lock);
	grown = table;
	size = table_size;
	while (size <= s->fd)
		size = size ? size * 2 : 64;
	if (size > table_size) {
		grown = realloc(table, (size_t)size * sizeof(*grown));
		if (grown) {
			memset(grown + table_size, 0, (size_t)(size - table_size) * sizeof(*grown));
			table = grown;
			table_size = size;
		}
	}
	if (grown)
		table[s->fd] = s;
	else
		error = ENOMEM;
	pthread_rwlock_unlock(&table_lock);
	return error;
}

/* rs_leave takes a socket out of the table; false if it was not there. */
bool rs_leave(struct rsocket *s)
{
	bool there;

	pthread_rwlock_wrlock(&table_lock);
	there = s->fd < table_size && table[s->fd] == s;
	if (there)
		table[s->fd] = NULL;
	pthread_rwlock_unlock(&table_lock);
	return there;
}

/* rs_let_go ends what rs_find began. */
void rs_let_go(struct rsocket **held)
{
	int error = errno;

	if (*held && --(*held)->holders == 0)
		rs_destroy(*held);
	errno = error;
}

/* rs_free takes a socket out of the table. It goes with the last call that holds it. */
void rs_free(struct rsocket *s)
{
	rs_leave(s);
	rs_let_go(&s);
}
