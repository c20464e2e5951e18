// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Media types of the OCI image specification 1.0.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
}

type manifest struct {
	Schema    int          `json:"schemaVersion"`
	MediaType string       `json:"mediaType"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// imageConfig is the configuration of the image's containers.
type imageConfig struct {
	platform
	Created string `json:"created"`
	Config  struct {
		Entrypoint []string          `json:"Entrypoint"`
		Env        []string          `json:"Env"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		Type  string   `json:"type"`
		Diffs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []struct {
		Created string `json:"created"`
		By      string `json:"created_by"`
	} `json:"history"`
}

// layout writes an OCI image layout as a tar file, which podman and docker load, and skopeo copies (oci-archive:).
type layout struct {
	tar  *tar.Writer
	when time.Time
	have map[string]bool
}

// imageName is the name of the loaded image, which the Makefile and deploy/ use. The image's labels contain the
// version.
const imageName = "localhost/roced:latest"

// image writes one image for all processors, which contains only the binary and the C libraries.
func (r *release) image() error {
	var b bytes.Buffer
	l := &layout{tar.NewWriter(&b), r.time, map[string]bool{}}
	all := index{Schema: 2, MediaType: typeIndex}
	for _, j := range r.jobs {
		one, err := l.platform(j)
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, one)
	}
	whole, err := l.json(typeIndex, all)
	if err != nil {
		return err
	}
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": imageName, "io.containerd.image.name": imageName}
	top, err := json.Marshal(index{Schema: 2, MediaType: typeIndex, Manifests: []descriptor{whole}})
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", top}} {
		if err := l.file(f.name, f.text); err != nil {
			return err
		}
	}
	if err := l.tar.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.output, fmt.Sprintf("roced_%s_image.tar", r.version)), b.Bytes(), 0o644)
}

// platform writes the image of a processor.
func (l *layout) platform(j *job) (d descriptor, err error) {
	layer, err := j.archive(append([]entry{
		{name: "run", mode: 0o755}, {name: "run/roced", mode: 0o755}, {name: "tmp", mode: 0o1777}, {name: "usr", mode: 0o755},
		{name: "usr/bin", mode: 0o755}, {name: "usr/bin/roced", source: j.path("roced"), mode: 0o755},
		{name: "usr/lib", mode: 0o755}, {name: "usr/lib/roced", mode: 0o755},
	}, j.libraryEntries("usr/lib/roced")...))
	if err != nil {
		return d, err
	}
	config := imageConfig{platform: platform{j.arch, "linux"}, Created: j.time.Format(time.RFC3339)}
	config.Config.Entrypoint, config.Config.Env = []string{"/usr/bin/roced"}, []string{"PATH=/usr/bin"}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title": "roced", "org.opencontainers.image.version": j.version, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	config.RootFS.Type, config.RootFS.Diffs = "layers", []string{digestOf(layer)}
	config.History = append(config.History, struct {
		Created string `json:"created"`
		By      string `json:"created_by"`
	}{config.Created, "make image"})
	packed, err := j.compressed(layer)
	if err != nil {
		return d, err
	}
	m := manifest{Schema: 2, MediaType: typeManifest, Layers: make([]descriptor, 1)}
	if m.Layers[0], err = l.blob(typeLayer, packed); err != nil {
		return d, err
	}
	if m.Config, err = l.json(typeConfig, config); err != nil {
		return d, err
	}
	d, err = l.json(typeManifest, m)
	d.Platform = &config.platform
	return d, err
}

func (l *layout) json(mediaType string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, text)
}

// blob writes a blob, unless it is already in the layout.
func (l *layout) blob(mediaType string, content []byte) (descriptor, error) {
	digest := digestOf(content)
	d := descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}
	if l.have[digest] {
		return d, nil
	}
	l.have[digest] = true
	return d, l.file("blobs/sha256/"+digest[len("sha256:"):], content)
}

func (l *layout) file(name string, content []byte) error {
	if err := l.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: l.when, Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err := l.tar.Write(content)
	return err
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
