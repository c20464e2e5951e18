// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// passed is the file of passed cases. Each line contains the key, the quoted note and the name of a case. Runs append
// to it, so that later ones can skip these cases.
type passed struct {
	lock  sync.Mutex
	file  *os.File // nil without -resume
	notes map[string]string
}

// openPassed opens the file. If the path is empty, it returns an empty list without a file.
func openPassed(path string) (*passed, error) {
	p := &passed{notes: map[string]string{}}
	if path == "" {
		return p, nil
	}
	var err error
	if p.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(p.file)
	for lines.Scan() {
		var key, note string
		if _, err := fmt.Sscanf(lines.Text(), "%s %q", &key, &note); err != nil {
			return nil, errors.Join(fmt.Errorf("-resume: %s: line %q: %w", path, lines.Text(), err), p.file.Close())
		}
		p.notes[key] = note
	}
	return p, lines.Err()
}

// Close closes the file.
func (p *passed) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// lookup returns the note of a passed case.
func (p *passed) lookup(key string) (note string, found bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	note, found = p.notes[key]
	return note, found
}

// add adds a passed case.
func (p *passed) add(key, name, note string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.notes[key] = note
	if p.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(p.file, "%s %q %s\n", key, note, name)
	return err
}

// key returns a hash of a case's inputs: the machine and its kernel, and either the test binary and the package's
// folder, or the script, guest.sh and the release's packages.
func (c testCase) key(machine, kernel string, share *share) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n", machine, kernel, c.name)
	if c.tests != nil {
		fmt.Fprintf(sum, "%s\n", c.tests.Run)
		err := errors.Join(addFile(sum, c.tests.Binary()), addFolder(sum, filepath.Join(share.folder, "tree", c.tests.Name)))
		return hex.EncodeToString(sum.Sum(nil)), err
	}
	fmt.Fprintf(sum, "%s\n%s\n%s\n", c.script, c.want, guestScript)
	packages, err := filepath.Glob(filepath.Join(share.folder, "*.deb"))
	for _, path := range packages {
		err = errors.Join(err, addFile(sum, path))
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// addFolder adds the files of a folder to a hash, by name and content. Go sources are in the binary.
func addFolder(sum hash.Hash, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".go") {
			return err
		}
		fmt.Fprintf(sum, "%s\n", strings.TrimPrefix(path, folder))
		return addFile(sum, path)
	})
}

// addFile adds the length and the content of a file to a hash.
func addFile(sum hash.Hash, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%d\n", info.Size())
	_, err = io.Copy(sum, file)
	return err
}
