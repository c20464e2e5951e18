// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/needs"
)

var check = errtest.Check

var (
	seven = Namespace{Cookie: 7, Inode: 70}
	here  = Place{seven, 3}
)

func nth(i int) string { return fmt.Sprintf("change %d", i) }

// sweepAll sweeps the journals of namespace 7 and collects their entries.
func sweepAll(t *testing.T, dir string) map[int][]string {
	t.Helper()
	found := map[int][]string{}
	check(t, Sweep(dir, "test", seven, func(index int, changes []string) error {
		slices.Sort(changes)
		found[index] = changes
		return nil
	}))
	return found
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "test-*"))
	check(t, err)
	return list
}

func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	j := New(dir, "test", here)
	for i := range 300 {
		check(t, j.Add(nth(i)))
	}
	check(t, j.Add(nth(299))) // is already listed
	for i := range 298 {
		check(t, j.Remove(nth(i)))
	}
	long := strings.Repeat("x", lineLen-1)
	check(t, j.Add(long))
	check(t, j.Remove(nth(999)))
	if err := j.Add(long + "x"); err == nil {
		t.Error("a line that is too long was accepted")
	}
	if info, err := j.file.Stat(); err != nil || info.Size() != 300*lineLen {
		t.Errorf("%d bytes, %v: free lines are not reused", info.Size(), err)
	}
	if found := sweepAll(t, dir); len(found) != 0 {
		t.Errorf("swept the journal of a living process: %v", found)
	}
	check(t, j.Close())
	check(t, j.Close())
	if found := sweepAll(t, dir); !reflect.DeepEqual(found, map[int][]string{3: {nth(298), nth(299), long}}) {
		t.Errorf("swept %v", found)
	}
	if list := files(t, dir); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

func TestJournalOfNothing(t *testing.T) {
	dir := t.TempDir()
	j := New(dir, "test", here)
	for i := range 2 {
		check(t, j.Add(nth(i)))
		check(t, j.Remove(nth(i)))
		if list := files(t, dir); len(list) != 0 {
			t.Errorf("left: %v", list)
		}
		check(t, j.Close())
	}
}

// TestSweepLeavesTheRest: journals of existing namespaces and of other kinds, and other files, are kept.
func TestSweepLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	own, err := ThisNamespace()
	check(t, err)
	names := []string{
		fmt.Sprintf("test-77-%d-3-1", own.Inode), "test-7-70-x-1", "test-7-70", "test-7-70-3", "tester-7-70-3-1", "other-7-70-3-1",
	}
	for _, name := range names {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("change 1\n"), 0o600))
	}
	if found := sweepAll(t, dir); len(found) != 0 {
		t.Errorf("swept %v", found)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepRemovesDestroyedNamespaces: the journal of a destroyed namespace is removed, because its changes no longer
// exist.
func TestSweepRemovesDestroyedNamespaces(t *testing.T) {
	if seen, err := os.Readlink("/proc/self/ns/pid"); err != nil || seen != initialPIDs {
		t.Logf("this process cannot see all processes (%v, %v), so journals of namespaces that may not exist are kept", seen, err)
		if (Namespace{Cookie: 77, Inode: 1}).gone() {
			t.Error("a namespace that may exist is considered destroyed")
		}
		return
	}
	needs.Root(t) // to see other users' namespaces
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "test-77-1-3-1"), []byte("change 1\n"), 0o600))
	if found := sweepAll(t, dir); len(found) != 0 || len(files(t, dir)) != 0 {
		t.Errorf("swept %v, left %v", found, files(t, dir))
	}
}

func TestSweepReadsWhatItCan(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "test-7-70-3-1"), []byte("one\n\n a b\x00  \ntwo   \nnot finis"), 0o600))
	if found := sweepAll(t, dir); !reflect.DeepEqual(found, map[int][]string{3: {"a b\x00", "one", "two"}}) {
		t.Errorf("swept %v", found)
	}
	if found := sweepAll(t, filepath.Join(dir, "none")); len(found) != 0 {
		t.Errorf("swept %v in a missing directory", found)
	}
}

func TestSweepKeepsWhatFailed(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "test-7-70-3-1"), []byte("one\n"), 0o600))
	err := Sweep(dir, "test", seven, func(int, []string) error { return os.ErrPermission })
	if !errors.Is(err, os.ErrPermission) || len(sweepAll(t, dir)) != 1 {
		t.Errorf("%v; or the journal was removed although its changes were not undone", err)
	}
}

// TestLeft: Left reports and keeps the changes of a dead process, and does not report those of a living one.
func TestLeft(t *testing.T) {
	dir := t.TempDir()
	dead, alive := New(dir, "test", here), New(dir, "test", here)
	check(t, dead.Add(nth(1)))
	check(t, dead.Close())
	check(t, alive.Add(nth(2)))
	for range 2 {
		found := map[int][]string{}
		check(t, Left(dir, "test", seven, func(index int, changes []string) { found[index] = append(found[index], changes...) }))
		if want := (map[int][]string{3: {nth(1)}}); !reflect.DeepEqual(found, want) {
			t.Errorf("left %v, want %v", found, want)
		}
	}
	check(t, alive.Close())
}

// FuzzListed: journals with any content and any name do not crash the parsers.
func FuzzListed(f *testing.F) {
	f.Add("one\n\n a b\x00  \ntwo   \nnot finis", "test-7-70-3-1")
	f.Fuzz(func(t *testing.T, text, name string) {
		for _, change := range listed(text) {
			if change == "" || strings.ContainsAny(change, "\n") {
				t.Errorf("change %q", change)
			}
		}
		parseName("test", name)
	})
}
