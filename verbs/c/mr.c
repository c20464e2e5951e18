/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "memory.h"
#include "objects.h"

/* A memory region. */
struct mr {
	struct ibv_mr ibv;
	unsigned access;            /* zero-based: its addresses start at 0, not at the memory's */
	bool writable;              /* its memory was writable when the region got it, or later when it allowed writing */
	void *shared;               /* its memory in the process file */
	size_t shared_length;       /* 0: none */
};

/* The process file is received from the service with the first region. */
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static void in_child(void) { pthread_mutex_init(&sharing, NULL); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

/* Requests the process file, or passes the one that the process has. */
static int ask_for_file(struct roced_session *s, int mine, int *fd)
{
	struct roced_share_memory_request r = { .has_file = mine >= 0, .size = roced_memory_space() };
	struct roced_share_memory_grant g;
	int count = 1, failed = 0;

	roced_passing_lock(s);
	if (mine >= 0)
		failed = roced_pass_file(s, mine);
	if (!failed)
		failed = roced_ask(s, ROCED_SHARE_MEMORY, &r, sizeof(r), &g, sizeof(g), NULL, fd, &count);
	roced_passing_unlock(s);
	return failed ? failed : count == 1 ? 0 : EPROTO;
}

/*
 * The service knows a process file as long as a session of the process has it. When all were closed, or it is another
 * service by now, there is a new one. A session is granted one file: it is kept if memory cannot be taken from it yet, as
 * long as regions of another file are registered, or where there is no room for tables.
 */
static int take_file(struct context *c)
{
	int mine = roced_memory_file(), failed = 0;

	if (c->granted < 0) {
		failed = ask_for_file(c->session, mine, &c->granted);
		if (failed == EINVAL && mine >= 0)
			failed = ask_for_file(c->session, -1, &c->granted);
	}
	if (failed)
		return failed;
	failed = roced_memory_start(c->granted);
	if (failed)
		roced_debug("share memory: %s", roced_memory_reason());
	else
		c->granted = -1; /* it is the memory's */
	return failed;
}

/* roced_share_with makes the session share the process file, from which memory is then allocated. */
int roced_share_with(struct context *c)
{
	int failed = 0;

	pthread_mutex_lock(&sharing);
	if (!c->shares) {
		failed = take_file(c);
		c->shares = !failed;
	}
	pthread_mutex_unlock(&sharing);
	return failed;
}

/* writes reports whether the memory of a region must be writable. The kernel has the same rule: a window may allow writing. */
static bool writes(unsigned access) { return access & (ROCED_ACCESS_LOCAL_WRITE | ROCED_ACCESS_MW_BIND); }

static struct mr *new_mr(struct ibv_pd *pd, void *addr, size_t length)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	if (mr) {
		mr->ibv.context = pd->context;
		mr->ibv.pd = pd;
		mr->ibv.addr = addr;
		mr->ibv.length = length;
	}
	return mr;
}

/* new_device_mr returns a region of the device's own memory, or of none. */
static struct mr *new_device_mr(struct ibv_pd *pd, size_t length)
{
	struct mr *mr = new_mr(pd, NULL, length);

	if (mr)
		mr->writable = true;
	return mr;
}

static void set_keys(struct mr *mr, uint32_t handle, uint32_t lkey)
{
	mr->ibv.handle = handle;
	mr->ibv.lkey = mr->ibv.rkey = lkey;
}

/*
 * Checks the length before pages move, since that takes long and the pages count as registered meanwhile. The service
 * would reject the length anyway.
 */
static int check_length(struct ibv_context *context, size_t length)
{
	enum { MOVES_FAST = 16 << 20 };
	struct ibv_device_attr attr;
	int failed = length > MOVES_FAST ? ibv_query_device(context, &attr) : 0;

	if (failed || length <= MOVES_FAST || length <= attr.max_mr_size)
		return failed;
	roced_debug("register %zu bytes: a region has at most %llu, as far as the service lets its user have memory "
		    "(memory in [limits] of its configuration)", length, (unsigned long long)attr.max_mr_size);
	return ENOMEM;
}

/* Where the service finds memory: in the process file, or in one that is passed. */
struct place {
	int fd;          /* of the file to pass, to be closed; -1: the process file, in which the memory is shared */
	uint64_t offset;
};

/* Shares the memory, or finds the file of shared memory. With ROCED_DEBUG it prints the cause of a failure. */
static int share(struct ibv_context *context, void *addr, size_t length, bool write, struct place *at)
{
	struct context *c = context_of(context);
	int failed = forked(c) ? EIO : check_length(context, length); /* else pages would move needlessly */
	const char *reason = NULL;

	*at = (struct place){ .fd = -1, .offset = (uintptr_t)addr };
	if (!failed)
		failed = roced_share_with(c);
	if (failed)
		return failed == EOPNOTSUPP ? EFAULT : failed;
	failed = roced_memory_share(addr, length, write);
	if (failed == EOPNOTSUPP)
		failed = roced_memory_file_of(addr, length, write, &at->fd, &at->offset, &reason);
	if (failed)
		roced_debug("register %zu bytes at %p: %s%s%s", length, addr, roced_memory_reason(), reason ? "; " : "",
			reason ? reason : "");
	return failed;
}

/* Runs a command for memory at a place: own or passed, by the kind of place. */
static int ask_at(struct roced_session *s, const struct place *at, uint16_t own, uint16_t passed, const void *request,
	size_t request_len, void *grant, size_t grant_len)
{
	if (at->fd < 0)
		return roced_ask(s, own, request, request_len, grant, grant_len, NULL, NULL, NULL);
	roced_passing_lock(s);
	int failed = roced_pass_file(s, at->fd);
	if (!failed)
		failed = roced_ask(s, passed, request, request_len, grant, grant_len, NULL, NULL, NULL);
	roced_passing_unlock(s);
	return failed == EOPNOTSUPP ? EFAULT : failed;
}

/* Ends the use of a place: the registered memory goes to mr, other memory is unshared. The service has its own
   descriptor. */
static void settle_place(const struct place *at, bool registered, struct mr *mr, void *addr, size_t length)
{
	if (at->fd >= 0)
		close(at->fd);
	else if (!registered)
		roced_memory_unshare(addr, length);
	if (registered) {
		mr->shared = addr;
		mr->shared_length = at->fd < 0 ? length : 0;
	}
}

/*
 * The address that a region begins at. <infiniband/verbs.h> calls ibv_reg_mr_iova2 for ibv_reg_mr too, with the memory's
 * address as iova, so that this iova stands for none.
 */
static uint64_t base_of(const void *addr, uint64_t iova, unsigned access)
{
	return (access & ROCED_ACCESS_ZERO_BASED) && iova == (uintptr_t)addr ? 0 : iova;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct context *c = context_of(pd->context);
	struct roced_reg_mr_request r = { .pd = pd->handle, .access = access, .length = (int64_t)length,
		.iova = base_of(addr, iova, access) };
	struct roced_reg_mr_grant g;
	struct place at;

	if (length > INT64_MAX)
		return fail((access & ROCED_ACCESS_ON_DEMAND) ? EOPNOTSUPP : EINVAL); /* all memory at once: not here */
	struct mr *mr = new_mr(pd, addr, length);
	if (!mr)
		return fail(ENOMEM);
	mr->access = access;
	mr->writable = writes(access);
	int failed = share(pd->context, addr, length, mr->writable, &at);
	if (!failed) {
		r.offset = at.offset;
		failed = ask_at(c->session, &at, ROCED_REG_MR, ROCED_REG_FILE_MR, &r, sizeof(r), &g, sizeof(g));
		settle_place(&at, !failed, mr, addr, length);
	}
	if (failed) {
		free(mr);
		return fail(failed);
	}
	set_keys(mr, g.mr, g.lkey);
	return &mr->ibv;
}

/* Cancellation in between would leave locks held. rdma-core's is not a cancellation point either. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	struct ibv_mr *mr = reg_mr(pd, addr, length, iova, access);
	pthread_setcancelstate(cancel, NULL);
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
	int fd, int access)
{
	return fail(EOPNOTSUPP);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct mr *mr = OF(struct mr, ibv, ibv);
	struct roced_dereg_mr_request r = { .mr = ibv->handle };
	int failed = roced_release(context_of(ibv->context)->session, ROCED_DEREG_MR, &r, sizeof(r));

	if (failed)
		return failed;
	roced_memory_unshare(mr->shared, mr->shared_length); /* pages that cannot be unregistered stay as they are */
	free(mr);
	return 0;
}

/* The answers of ibv_rereg_mr: the region is as it was, with errno set. */
enum { REREG_INPUT = -1,
	REREG_KNOWN = ROCED_REREG_MR_CHANGE_TRANSLATION | ROCED_REREG_MR_CHANGE_PD | ROCED_REREG_MR_CHANGE_ACCESS };

static int rereg_refuse(int failed)
{
	errno = failed;
	return REREG_INPUT;
}

/* The access of the region when the call has succeeded. */
static unsigned access_after(const struct mr *mr, int flags, int access)
{
	return flags & ROCED_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->access;
}

static int rereg_moved(struct mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct context *c = context_of(mr->ibv.context);
	unsigned after = access_after(mr, flags, access);
	struct roced_rereg_mr_memory_request r = { .mr = mr->ibv.handle, .flags = (uint32_t)flags,
		.pd = pd ? pd->handle : 0,
		.access = (uint32_t)access, .iova = (after & ROCED_ACCESS_ZERO_BASED) ? 0 : (uintptr_t)addr,
		.length = (int64_t)length };
	struct mr before = *mr;
	bool write = writes(after);
	struct place at;
	int failed = share(mr->ibv.context, addr, length, write, &at);

	if (failed)
		return failed;
	r.offset = at.offset;
	failed = ask_at(c->session, &at, ROCED_REREG_MR_MEMORY, ROCED_REREG_FILE_MR, &r, sizeof(r), NULL, 0);
	settle_place(&at, !failed, mr, addr, length);
	if (failed)
		return failed;
	roced_memory_unshare(before.shared, before.shared_length);
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->writable = write;
	return 0;
}

/* rereg_kept changes the PD or the access of a region and keeps its memory. */
static int rereg_kept(struct mr *mr, int flags, struct ibv_pd *pd, int access)
{
	struct roced_rereg_mr_request r = { .mr = mr->ibv.handle, .flags = (uint32_t)flags, .pd = pd ? pd->handle : 0,
		.access = (uint32_t)access };
	bool write = (flags & ROCED_REREG_MR_CHANGE_ACCESS) && writes((unsigned)access);
	int failed = write && !mr->writable ? roced_memory_writable(mr->ibv.addr, mr->ibv.length) : 0;

	if (failed)
		roced_debug("change the access of a region at %p: %s", mr->ibv.addr, roced_memory_reason());
	else
		failed = roced_tell(context_of(mr->ibv.context)->session, ROCED_REREG_MR, &r, sizeof(r));
	mr->writable = mr->writable || (write && !failed);
	return failed;
}

int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr *mr = OF(struct mr, ibv, ibv);
	int failed;

	if (flags & ~REREG_KNOWN || ((flags & ROCED_REREG_MR_CHANGE_PD) && !pd))
		return rereg_refuse(EINVAL);
	if ((flags & ROCED_REREG_MR_CHANGE_TRANSLATION) && (!addr || length == 0 || length > INT64_MAX))
		return rereg_refuse(EINVAL);
	if (!(flags & ROCED_REREG_MR_CHANGE_PD))
		pd = NULL;
	if (flags & ROCED_REREG_MR_CHANGE_TRANSLATION) {
		int cancel;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		failed = rereg_moved(mr, flags, pd, addr, length, access);
		pthread_setcancelstate(cancel, NULL);
	} else {
		failed = rereg_kept(mr, flags, pd, access);
	}
	if (failed)
		return rereg_refuse(failed);
	mr->access = access_after(mr, flags, access);
	if (pd) {
		ibv->context = pd->context;
		ibv->pd = pd;
	}
	return 0;
}

struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	struct roced_alloc_null_mr_request r = { .pd = pd->handle };
	struct roced_alloc_null_mr_grant g;
	struct mr *mr = new_device_mr(pd, SIZE_MAX);
	int failed = mr ? roced_ask_simple(context_of(pd->context)->session, ROCED_ALLOC_NULL_MR, &r, &g) : ENOMEM;

	if (failed) {
		free(mr);
		return fail(failed);
	}
	set_keys(mr, g.mr, g.lkey);
	return &mr->ibv;
}

struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
	unsigned access)
{
	struct roced_reg_dm_mr_request r = { .pd = pd->handle, .dm = dm->handle, .offset = (int64_t)offset,
		.length = (int64_t)length, .access = access };
	struct roced_reg_dm_mr_grant g;
	struct roced_session *s = context_of(pd->context)->session;

	if (dm_session(dm) != s && !forked(context_of(pd->context)))
		return fail(EINVAL); /* of another device, of a session that is over, or of the parent's */
	struct mr *mr = new_device_mr(pd, length);
	int failed = mr ? roced_ask_simple(s, ROCED_REG_DM_MR, &r, &g) : ENOMEM;

	if (failed) {
		free(mr);
		return fail(failed);
	}
	set_keys(mr, g.mr, g.lkey);
	return &mr->ibv;
}

/*
 * Advice is for memory that a device has to prefetch. Here memory is present: the advice is checked and has no
 * effect.
 */
int advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *list, uint32_t count)
{
	enum { LAST_ADVICE = 2, FLUSH = 1 };

	if (advice < 0 || advice > LAST_ADVICE)
		return result(EOPNOTSUPP);
	if ((flags & ~(uint32_t)FLUSH) || count == 0 || !list)
		return result(EINVAL);
	return gone(context_of(pd->context)->session);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle) { return fail(EOPNOTSUPP); }

void ibv_unimport_mr(struct ibv_mr *mr) {}
