// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// TestMusl: both libraries are built for musl, and programs that are linked with it run over them, as those of glibc do
// with the same list of folders.
func TestMusl(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "musl-gcc", "/usr/include/rdma/rdma_verbs.h")
	s := serve(t)
	dir := filepath.Join(t.TempDir(), "musl")
	if err := errors.Join(os.Mkdir(dir, 0o755), musl.libraries(dir), readable(dir)); err != nil {
		t.Fatal(err)
	}
	s.lib += ";" + s.lib + ":" + dir // libraries.SearchPath
	s.program(t, "traffic")
	for _, name := range []string{"tests/traffic", "tests/extended", "tests/threads", "cm/tests/synchronous"} {
		t.Run(filepath.Base(name), func(t *testing.T) { s.output(t, musl.program(t, name)) })
	}
	t.Run("memory", muslMemory)
}

// muslMemory moves pages of programs that are linked with musl, beside their other threads.
func muslMemory(t *testing.T) {
	m := buildMemory(t, musl)
	for _, guard := range memoryGuards {
		variant := []string{"MEMORY_THREAD=1", "ROCED_MEMORY_GUARD=" + guard}
		for _, name := range []string{"plain", "protection", "stack", "grow", "fork", "moved", "unmapped", "alloc", "limits", "space", "handler"} {
			m.succeeds(t, variant, "memory", name)
		}
		m.succeeds(t, variant, "memoryrandom", "1", "1000")
	}
}

// TestValgrind: memcheck finds no error in programs over the libraries, and no leak.
func TestValgrind(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "valgrind")
	if sanitize() != nil {
		needs.Skip(t, "libraries without a sanitizer: unset ROCED_SANITIZE")
	}
	s := serve(t)
	for _, name := range []string{"traffic", "events"} {
		s.output(t, "valgrind", "-q", "--error-exitcode=9", "--leak-check=full", glibc().program(t, "tests/"+name))
	}
}
