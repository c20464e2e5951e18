//go:build linux

package ctest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// muslFlags let programs that are linked with musl have the kernel's headers, and libibverbs-dev's.
func muslFlags(t *testing.T) []string {
	t.Helper()
	multiarch, err := exec.Command("gcc", "-print-multiarch").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"-idirafter", "/usr/include", "-idirafter", "/usr/include/" + strings.TrimSpace(string(multiarch))}
}

// TestMusl: both libraries are built for musl, and programs that are linked with it run over them, as those of glibc do
// with the same list of folders.
func TestMusl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		t.Skip("musl-tools is not installed")
	}
	needHeader(t, "/usr/include/rdma/rdma_verbs.h")
	s := serve(t)
	dir := filepath.Join(t.TempDir(), "musl")
	if err := errors.Join(os.Mkdir(dir, 0o755), makeLibraries("musl", dir, "MUSL=1")); err != nil {
		t.Fatal(err)
	}
	glibc := s.lib
	s.lib = glibc + ";" + glibc + ":" + dir // libraries.SearchPath
	ofGlibc := compile(t, "traffic", "-L"+glibc, "-libverbs")
	if err := readable(ofGlibc); err != nil {
		t.Fatal(err)
	}
	s.output(t, ofGlibc)
	for _, source := range []string{"tests/traffic.c", "tests/extended.c", "tests/threads.c", "cm/tests/synchronous.c"} {
		program := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c"))
		args := append(muslFlags(t), "-std=gnu11", "-g", "-O1", "-pthread", "-o", program, "../"+source, "-L"+dir, "-lrdmacm", "-libverbs")
		if err := made("musl-gcc", args...); err != nil {
			t.Fatal(err)
		}
		if err := readable(program); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(program), func(t *testing.T) { s.output(t, program) })
	}
	t.Run("memory", muslMemory)
}

// muslMemory moves pages of programs that are linked with musl, beside their other threads.
func muslMemory(t *testing.T) {
	sources, err := filepath.Glob("../memory*.c")
	if err != nil {
		t.Fatal(err)
	}
	m := memoryPrograms(t.TempDir())
	for _, name := range []string{"memory", "memoryrandom"} {
		args := append(muslFlags(t), "-std=c11", "-O2", "-g", "-pthread", "-o", filepath.Join(string(m), name), "../tests/"+name+".c")
		if err := made("musl-gcc", append(args, sources...)...); err != nil {
			t.Fatal(err)
		}
	}
	for _, guard := range memoryGuards {
		variant := []string{"MEMORY_THREAD=1", "ROCED_MEMORY_GUARD=" + guard}
		for _, name := range []string{"plain", "protection", "stack", "grow", "fork", "moved", "unmapped", "alloc", "limits"} {
			m.succeeds(t, variant, "memory", name)
		}
		m.succeeds(t, variant, "memoryrandom", "1", "1000")
	}
}

// TestValgrind: memcheck finds no error in programs over the libraries, and no leak.
func TestValgrind(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("valgrind"); err != nil || sanitize() != nil {
		t.Skip("no valgrind")
	}
	s := serve(t)
	for _, name := range []string{"traffic", "events"} {
		program := compile(t, name, "-L"+s.lib, "-libverbs")
		if err := readable(program); err != nil {
			t.Fatal(err)
		}
		s.output(t, "valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program)
	}
}
