/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program may only read cannot be registered for writing, whatever it is and however it came to be so. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

enum { PAGE = 65536, SIZE = 4 * PAGE }; /* whole pages on every machine */

static const char text[SIZE] __attribute__((aligned(PAGE))) = "constant";

static struct pair p;

static void refused(const void *memory, size_t length, int access)
{
	errno = 0;
	CHECK(!ibv_reg_mr(p.pd, (void *)memory, length, access));
	CHECK_IS(errno, EFAULT);
}

/* registered reports that a region can be registered, and that a SEND reads its first bytes. */
static void registered(const void *memory, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(p.pd, (void *)memory, SIZE, access);

	CHECK(mr);
	memset(p.memory, 0, 100);
	post_recv_at(p.b, p.mr, p.memory, 100, 1);
	post_send_at(p.a, mr, (void *)memory, 100, 2);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK(memcmp(p.memory, memory, 100) == 0);
	CHECK_IS(ibv_dereg_mr(mr), 0);
}

/* read_only reports that memory can be registered for reading alone. */
static void read_only(const void *memory)
{
	static const int writes[] = { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, ALL_ACCESS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND };

	for (int n = 0; n < (int)(sizeof(writes) / sizeof(*writes)); n++)
		refused(memory, SIZE, writes[n]);
	registered(memory, 0);
	registered(memory, IBV_ACCESS_REMOTE_READ);
}

static char *anonymous(int protection)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	strcpy(memory, "anonymous");
	CHECK_IS(mprotect(memory, SIZE, protection), 0);
	return memory;
}

static int memfd(void)
{
	int fd = memfd_create("of the program", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0 && pwrite(fd, "file", 4, 0) == 4);
	return fd;
}

static void *mapped(int fd, int kind)
{
	void *memory = mmap(NULL, SIZE, PROT_READ, kind, fd, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

/* parts: one page that is read-only, among others, is enough. */
static void parts(char *memory)
{
	for (int page = 0; page < 4; page++) {
		CHECK_IS(mprotect(memory + page * PAGE, PAGE, PROT_READ), 0);
		refused(memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
		refused(memory + page * PAGE + PAGE - 1, 1, IBV_ACCESS_LOCAL_WRITE);
		registered(memory, 0);
		CHECK_IS(mprotect(memory, SIZE, PROT_READ | PROT_WRITE), 0);
		registered(memory, ALL_ACCESS);
	}
}

/* changes: the protection counts that memory has when it is registered, also beside another region of it. */
static void changes(char *memory)
{
	struct ibv_mr *reader = ibv_reg_mr(p.pd, memory, SIZE, 0), *writer;

	CHECK(reader);
	refused(memory, SIZE, ALL_ACCESS);
	CHECK_IS(mprotect(memory, SIZE, PROT_READ | PROT_WRITE), 0);
	writer = ibv_reg_mr(p.pd, memory, SIZE, ALL_ACCESS);
	CHECK(writer);
	CHECK_IS(mprotect(memory, SIZE, PROT_READ), 0);
	refused(memory, SIZE, ALL_ACCESS);
	CHECK_IS(ibv_dereg_mr(reader), 0);
	refused(memory, SIZE, ALL_ACCESS);
	/* as to a device, whose pages are pinned, the region stays writable */
	strcpy((char *)p.memory, "by the device");
	post_recv_at(p.b, writer, memory, SIZE, 1);
	post_send_at(p.a, p.mr, p.memory, 100, 2);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(strcmp(memory, "by the device"), 0);
	CHECK_IS(ibv_rereg_mr(writer, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	CHECK_IS(ibv_rereg_mr(writer, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS), 0);
	CHECK_IS(ibv_dereg_mr(writer), 0);
	refused(memory, SIZE, ALL_ACCESS);
}

static void not_changed(struct ibv_mr *mr, int flags, const void *memory, int access)
{
	errno = 0;
	CHECK_IS(ibv_rereg_mr(mr, flags, NULL, (void *)memory, memory ? SIZE : 0, access), IBV_REREG_MR_ERR_INPUT);
	CHECK_IS(errno, EFAULT);
}

/* registered_again: a region comes to read-only memory, or to writing, by ibv_rereg_mr. */
static void registered_again(char *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(p.pd, p.memory, 100, ALL_ACCESS);
	int move = IBV_REREG_MR_CHANGE_TRANSLATION, change = IBV_REREG_MR_CHANGE_ACCESS;

	CHECK(mr);
	not_changed(mr, move, memory, 0); /* the access stays */
	not_changed(mr, move | change, memory, ALL_ACCESS);
	CHECK_IS(mr->length, 100);
	CHECK_IS(ibv_rereg_mr(mr, move | change, NULL, memory, SIZE, 0), 0);
	not_changed(mr, change, NULL, ALL_ACCESS);
	CHECK_IS(ibv_rereg_mr(mr, move, NULL, (void *)text, SIZE, 0), 0);
	CHECK_IS(ibv_rereg_mr(mr, change, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ), 0);
	not_changed(mr, change, NULL, IBV_ACCESS_MW_BIND);
	CHECK_IS(ibv_rereg_mr(mr, move, NULL, memory, SIZE, 0), 0);
	CHECK_IS(mprotect(memory, SIZE, PROT_READ | PROT_WRITE), 0);
	CHECK_IS(ibv_rereg_mr(mr, change, NULL, NULL, 0, ALL_ACCESS), 0);
	CHECK_IS(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	int fd = memfd();
	char *none = anonymous(PROT_NONE), *blind = anonymous(PROT_WRITE);

	open_pair(&p, IBV_QPT_RC);
	read_only(text);
	CHECK_IS(strcmp(text, "constant"), 0);
	read_only(anonymous(PROT_READ));
	read_only(mapped(fd, MAP_SHARED));
	read_only(mapped(fd, MAP_PRIVATE));
	refused(none, SIZE, 0);
	refused(none, SIZE, ALL_ACCESS);
	refused(blind, SIZE, 0);
	refused(blind, SIZE, ALL_ACCESS); /* the kernel allows it; the library copies pages, and cannot read these */
	parts(anonymous(PROT_READ | PROT_WRITE));
	char *shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(shared != MAP_FAILED);
	parts(shared);
	changes(anonymous(PROT_READ));
	changes(mapped(fd, MAP_SHARED));
	registered_again(anonymous(PROT_READ));
	registered_again(mapped(fd, MAP_SHARED));
	close_pair(&p);
	close(fd);
	return 0;
}
