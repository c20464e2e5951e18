// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file in an archive, or a folder if it has neither source nor link.
type entry struct {
	name, source, link string
	mode               int64
}

// tarball writes an archive with the binary, the C libraries and the manual for use without a package, and the SBOM.
func (j *job) tarball() error {
	name := fmt.Sprintf("roced_%s_linux_%s", j.version, j.arch)
	entries := []entry{{name: "bin", mode: 0o755}, {name: "bin/roced", source: j.path("roced"), mode: 0o755}, {name: "lib", mode: 0o755}}
	entries = append(entries, j.libraryEntries("lib")...)
	entries = append(entries, entry{name: "share", mode: 0o755}, entry{name: "share/man", mode: 0o755})
	for _, section := range []string{"5", "8"} {
		pages, err := filepath.Glob(j.path("man/*." + section + ".gz"))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: "share/man/man" + section, mode: 0o755})
		for _, page := range pages { // Glob sorts them
			entries = append(entries, entry{name: "share/man/man" + section + "/" + filepath.Base(page), source: page, mode: 0o644})
		}
	}
	entries = append(entries, entry{name: "LICENSE", source: "LICENSE", mode: 0o644}, entry{name: "CHANGELOG.md", source: "CHANGELOG.md", mode: 0o644})
	for i := range entries {
		entries[i].name = path.Join(name, entries[i].name)
	}
	archive, err := j.archive(append([]entry{{name: name, mode: 0o755}}, entries...))
	if err != nil {
		return err
	}
	bill, err := j.bill()
	if err != nil {
		return err
	}
	base := filepath.Join(j.output, name)
	return errors.Join(j.compress(base+".tar.gz", archive), os.WriteFile(base+".cdx.json", bill, 0o644))
}

// libraryEntries returns the entries of the C libraries in a folder.
func (j *job) libraryEntries(folder string) []entry {
	list := []entry{{name: folder + "/musl", mode: 0o755}}
	for _, library := range libraries {
		list = append(list, entry{name: folder + "/" + library, source: j.path("verbs/" + library), mode: 0o755})
	}
	return list
}

// archive returns a tar file of entries, which have the owner root and the release's time.
func (r *release) archive(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := e.write(w, r.time); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func (e entry) write(w *tar.Writer, when time.Time) error {
	header := tar.Header{Name: e.name, Mode: e.mode, ModTime: when, Format: tar.FormatUSTAR}
	var content []byte
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	case e.source == "":
		header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
	default:
		var err error
		if content, err = os.ReadFile(e.source); err != nil {
			return err
		}
		header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
	}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// compressed compresses like gzip -9n, without name and time.
func (r *release) compressed(text []byte) ([]byte, error) {
	level := gzip.BestCompression
	if r.draft != "" {
		level = gzip.BestSpeed
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err == nil {
		_, err = z.Write(text)
		err = errors.Join(err, z.Close())
	}
	return b.Bytes(), err
}

// compress writes text to a compressed file.
func (r *release) compress(path string, text []byte) error {
	packed, err := r.compressed(text)
	if err != nil {
		return err
	}
	return os.WriteFile(path, packed, 0o644)
}

func sumOf(path string) ([32]byte, error) {
	content, err := os.ReadFile(path)
	return sha256.Sum256(content), err
}
