# What the tests run, kept in OUT beside the libraries: make -C verbs/c -f ctest/programs.mk OUT=dir dir/tests/traffic
include Makefile

SANITIZE ?=
CHECKED = -Wall -Wextra -Werror -g -pthread $(CPPFLAGS) $(SANITIZE)
SHARED = $(HEADERS) $(wildcard tests/*.h cm/tests/*.h) ctest/programs.mk

# With the sources of the caller's memory, and without the library.
$(OUT)/tests/memory $(OUT)/tests/memoryrandom: $(OUT)/tests/%: tests/%.c $(wildcard memory*.c) $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) -std=c11 -Wall -Wextra -Werror -O2 -g -pthread -fvisibility=hidden $(CPPFLAGS) $(filter %.c,$^) -o $@

$(OUT)/tests/queueside: tests/queueside.c $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) -std=gnu11 -Wall -Wextra -Werror -O2 $< -o $@

# With the sources of completion queues, as far as it calls them.
$(OUT)/tests/lastlook: tests/lastlook.c $(wildcard cq*.c) $(HEADERS) $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) -std=c11 -Wall -Wextra -Werror -Wno-unused-parameter -O2 -g -pthread -ffunction-sections -Wl,--gc-sections $(CPPFLAGS) $< -o $@

$(OUT)/tests/%.so: tests/%.c $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) -Wall -Wextra -Werror -O1 -shared -fPIC $< -o $@

$(OUT)/tests/%: tests/%.c $(OUT)/libibverbs.so.1 $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) -std=gnu11 $(CHECKED) -Wno-unused-function -O1 $< -L$(OUT) -libverbs -o $@

$(OUT)/cm/tests/%: cm/tests/%.c $(LIBRARIES) $(SHARED)
	@mkdir -p $(dir $@)
	$(CC) $(CHECKED) $< -L$(OUT) -lrdmacm -libverbs -o $@
