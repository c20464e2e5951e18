// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/tools"
	"golang.org/x/sys/unix"
)

// newestGLIBC is the newest glibc version that the C libraries may require.
const newestGLIBC = "2.28"

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build builds an archive and an image for this processor, and returns the contents of all files by name.
func build(t *testing.T, draft string) map[string][]byte {
	t.Helper()
	r := &release{version: "1.2.3", output: t.TempDir(), draft: draft}
	check(t, r.build([]string{runtime.GOARCH}, []string{"tar", "image"}))
	files := map[string][]byte{}
	list, err := os.ReadDir(r.output)
	check(t, err)
	for _, file := range list {
		files[file.Name()], err = os.ReadFile(filepath.Join(r.output, file.Name()))
		check(t, err)
	}
	return files
}

// kept returns the test's folder for compiled files.
func kept(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("verbs/c/build/package")
	check(t, err)
	check(t, os.MkdirAll(dir, 0o755))
	lock, err := os.Open(dir)
	check(t, err)
	t.Cleanup(func() { _ = lock.Close() })
	check(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	return dir
}

// TestRelease checks the contents of an archive and an image. With ROCED_RELEASE=twice, as in CI, it checks that a
// second build has the same bytes. A draft keeps the compiled files.
func TestRelease(t *testing.T) {
	needs.Tools(t, tools.ForPackage(runtime.GOARCH, runtime.GOARCH)...)
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000") // the checkout may have no git repository
	t.Chdir("../..")
	var first, second map[string][]byte
	if os.Getenv("ROCED_RELEASE") == "twice" {
		first, second = build(t, ""), build(t, "")
	} else {
		first = build(t, kept(t))
		second = first
	}
	base := "roced_1.2.3_linux_" + runtime.GOARCH
	for _, name := range []string{base + ".tar.gz", base + ".cdx.json", "roced_1.2.3_image.tar", "SHA256SUMS"} {
		if len(first[name]) == 0 || !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s: %d bytes, the second build differs: %d", name, len(first[name]), len(second[name]))
		}
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(first[base+".tar.gz"]))
	check(t, err)
	files := entriesOf(t, unpacked)
	for _, name := range []string{"bin/roced", "lib/libibverbs.so.1", "lib/librdmacm.so.1", "share/man/man8/roced.8.gz", "LICENSE"} {
		if len(files[base+"/"+name]) == 0 {
			t.Errorf("no %s in the archive", name)
		}
	}
	for _, name := range libraries[:2] {
		checkGLIBC(t, name, files[base+"/lib/"+name])
		checkMusl(t, name, files[base+"/lib/musl/"+name])
	}
	checkBill(t, first[base+".cdx.json"])
	checkImage(t, first["roced_1.2.3_image.tar"])
	if sums := string(first["SHA256SUMS"]); strings.Count(sums, "\n") != 3 {
		t.Errorf("checksums of three files: %q", sums)
	}
}

func entriesOf(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		check(t, err)
		files[header.Name], err = io.ReadAll(r)
		check(t, err)
	}
}

// checkGLIBC checks that a library requires no newer version than newestGLIBC, except for weak symbols.
func checkGLIBC(t *testing.T, name string, library []byte) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(library))
	check(t, err)
	needs, err := file.DynamicVersionNeeds()
	check(t, err)
	checked := 0
	for _, need := range needs {
		for _, version := range need.Needs {
			number, is := strings.CutPrefix(version.Dep, "GLIBC_")
			if is && version.Flags&weakVersion == 0 {
				checked++
				if compareVersions(number, newestGLIBC) > 0 {
					t.Errorf("%s needs %s of %s", name, version.Dep, need.Name)
				}
			}
		}
	}
	if checked == 0 {
		t.Errorf("%s needs no version of glibc", name)
	}
}

// checkMusl checks that a library requires musl's C library and not glibc.
func checkMusl(t *testing.T, name string, library []byte) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(library))
	check(t, err)
	needs, err := file.ImportedLibraries()
	check(t, err)
	if !slices.Contains(needs, "libc.so") || slices.Contains(needs, "libc.so.6") {
		t.Errorf("%s for musl needs %q", name, needs)
	}
}

func compareVersions(a, b string) int {
	numbers := func(s string) (list []int) {
		for _, part := range strings.Split(s, ".") {
			n := 0
			for _, digit := range part {
				n = 10*n + int(digit-'0')
			}
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(a), numbers(b))
}

// checkBill checks that the SBOM is CycloneDX, and contains the modules and the libraries.
func checkBill(t *testing.T, text []byte) {
	t.Helper()
	var b bom
	check(t, json.Unmarshal(text, &b))
	names := map[string]bool{}
	for _, c := range b.Components {
		names[c.Name] = true
	}
	if b.Format != "CycloneDX" || b.Spec != "1.5" || b.Metadata.Component.Version != "1.2.3" || !names["github.com/cilium/ebpf"] || !names["libibverbs.so.1"] || !names["musl/libibverbs.so.1"] || !names["stdlib"] {
		t.Errorf("%.400s", text)
	}
}

// checkImage checks the image from its index to the binary, with all digests.
func checkImage(t *testing.T, archive []byte) {
	t.Helper()
	files := entriesOf(t, bytes.NewReader(archive))
	get := func(d descriptor, into any) []byte {
		t.Helper()
		text := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if digestOf(text) != d.Digest || len(text) != d.Size {
			t.Fatalf("%s has %d bytes, and is %s", d.Digest, len(text), digestOf(text))
		}
		if into != nil {
			check(t, json.Unmarshal(text, into))
		}
		return text
	}
	var top, all index
	check(t, json.Unmarshal(files["index.json"], &top))
	get(top.Manifests[0], &all)
	var one manifest
	get(all.Manifests[0], &one)
	var config imageConfig
	get(one.Config, &config)
	layer, err := gzip.NewReader(bytes.NewReader(get(one.Layers[0], nil)))
	check(t, err)
	plain, err := io.ReadAll(layer)
	check(t, err)
	if config.RootFS.Diffs[0] != digestOf(plain) || config.Architecture != runtime.GOARCH || config.OS != "linux" {
		t.Errorf("%+v, layer %s", config, digestOf(plain))
	}
	inside := entriesOf(t, bytes.NewReader(plain))
	for _, name := range libraries {
		if len(inside["usr/lib/roced/"+name]) == 0 {
			t.Errorf("no %s in the image", name)
		}
	}
	binary, err := elf.NewFile(bytes.NewReader(inside["usr/bin/roced"]))
	check(t, err)
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the binary is not static")
		}
	}
}

// TestMissingTools checks that the error names all missing tools of all processors and an alternative, before anything
// is built.
func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r := &release{version: "1.2.3", output: filepath.Join(t.TempDir(), "dist")}
	err := r.build([]string{"amd64", "arm64"}, []string{"deb"})
	for _, want := range []string{"make", "gcc", "musl-gcc", "-linux-gnu-gcc", "-linux-musl-gcc", "apt-get install", "make package ARCHES=" + runtime.GOARCH, "-arch " + runtime.GOARCH} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %s", err, want)
		}
	}
	if _, err := os.Stat(r.output); err == nil {
		t.Error("the build started before the check of the tools")
	}
	if err := r.build([]string{"s390x"}, []string{"deb"}); err == nil || !strings.Contains(err.Error(), "s390x") {
		t.Errorf("%v", err)
	}
}

// TestVersionOf checks that the version is that of the tag, and for later commits a greater one that is not a tag's.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	for described, want := range map[string]string{
		"": untagged, "v1.2.3": "1.2.3", "v1.2.3-4-gabcdef0": "1.2.3+4.gabcdef0", "v1.2.3-rc.1": "1.2.3-rc.1",
	} {
		if got := versionOf(described); got != want {
			t.Errorf("%q: %s, want %s", described, got, want)
		}
	}
}
