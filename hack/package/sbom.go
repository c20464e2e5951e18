// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"time"
)

// bom is a bill of materials: CycloneDX 1.5 in JSON, limited to the build information of a Go program.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Serial     string      `json:"serialNumber"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bill returns the SBOM of the binary and the C libraries. It lists the modules in the binary's build information.
func (j *job) bill() ([]byte, error) {
	info, err := buildinfo.ReadFile(j.path("roced"))
	if err != nil {
		return nil, err
	}
	own, err := j.file("application", "roced", j.path("roced"))
	if err != nil {
		return nil, err
	}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{j.time.Format(time.RFC3339), own}}
	for _, name := range libraries {
		library, err := j.file("library", name, j.path("verbs/"+name))
		if err != nil {
			return nil, err
		}
		b.Components = append(b.Components, library)
	}
	b.Components = append(b.Components, component{Type: "library", Ref: "pkg:golang/stdlib@" + info.GoVersion[2:], Name: "stdlib", Version: info.GoVersion, PURL: "pkg:golang/stdlib@" + info.GoVersion[2:]})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		b.Components = append(b.Components, component{
			Type: "library", Ref: url, Name: m.Path, Version: m.Version, PURL: url, Properties: []property{{"go:sum", m.Sum}},
		})
	}
	id := sha256.Sum256([]byte(own.Hashes[0].Content))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // RFC 9562, version 8: derived from the contents
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// file returns the component of a built file, with its checksum.
func (j *job) file(kind, name, path string) (component, error) {
	sum, err := sumOf(path)
	c := component{Type: kind, Ref: name, Name: name, Version: j.version, Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}, Licenses: make([]license, 1)}
	c.Licenses[0].License.ID = "Apache-2.0"
	return c, err
}
