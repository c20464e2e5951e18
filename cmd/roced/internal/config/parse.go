// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Load reads a file. Errors in it are returned as Errors.
func Load(path string) (*Config, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, text)
}

// maxFile is the maximum size of a configuration file, in bytes.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: %w: larger than 1 MiB, so not a configuration file", path, unix.EFBIG)
	}
	return text, err
}

// Parse parses the text of a file with this name. Errors in it are returned as Errors.
func Parse(file string, text []byte) (*Config, error) {
	items, failed := read(text)
	p := &parser{config: Default(), errors: failed}
	for _, i := range items {
		p.item(i)
	}
	if failed == nil {
		p.check()
	}
	if len(p.errors) == 0 {
		return p.config, nil
	}
	for i := range p.errors {
		p.errors[i].File = file
	}
	slices.SortStableFunc(p.errors, func(a, b Error) int { return a.Line - b.Line })
	return nil, p.errors
}

// parser builds a configuration from the items of a document.
type parser struct {
	config  *Config
	errors  Errors
	unknown string // table whose keys are ignored because its header is an error
	refused int    // line of the last device whose interface has been reported as an error
}

func (p *parser) errorf(at place, key, format string, args ...any) {
	p.errors = append(p.errors, Error{Line: at.line, Column: at.column, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) item(i item) {
	switch {
	case i.header != "":
		p.header(i)
	case p.unknown == "" || !strings.HasPrefix(i.key, p.unknown+"."):
		p.value(i)
	}
}

// tables returns the opening bracket of a table's header, or "" for an unknown table.
func tables(name string) (bracket string) {
	if name == "device" {
		return "[["
	}
	for _, k := range keys {
		if strings.HasPrefix(k.name, name+".") {
			return "["
		}
	}
	return ""
}

func (p *parser) header(i item) {
	p.unknown = i.key
	switch bracket := tables(i.key); {
	case bracket == "":
		p.errorf(i.place, i.key, "unknown table; use %s", tableList())
	case bracket != i.header:
		p.errorf(i.place, i.key, "invalid table header: use %s", heading(i.key))
	case i.key == "device":
		p.unknown = ""
		p.config.Devices = append(p.config.Devices, NewDevice(""))
		p.config.device().line = i.line
	case strings.HasPrefix(i.key, "device.") && len(p.config.Devices) == 0:
		p.errorf(i.place, i.key, "is a table of a device: add [[device]] before it")
	default:
		p.unknown = ""
	}
}

func (p *parser) value(i item) {
	at := slices.IndexFunc(keys, func(k key) bool { return k.name == i.key })
	switch {
	case tables(i.key) != "":
		p.errorf(i.place, i.key, "is a table: write %s on a separate line, and its keys below", heading(i.key))
	case at < 0:
		p.errorf(i.place, i.key, "unknown key%s", instead(i.key))
	case strings.HasPrefix(i.key, "device.") && len(p.config.Devices) == 0:
		p.errorf(i.place, i.key, "is a key of a device: add [[device]] before it")
	case !keys[at].set(p.config, i.value):
		p.errorf(i.place, i.key, "invalid %s; use %s", shown(i.value), keys[at].want)
		if i.key == "device.interface" {
			p.refused = p.config.device().line
		}
	}
}

// instead returns a suggestion for an unknown key.
func instead(key string) string {
	if known := nearest(key); known != "" {
		return fmt.Sprintf("; did you mean %s?", known)
	}
	return "; roced config example prints all keys"
}

func shown(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("string %q", v)
	case int64:
		return fmt.Sprintf("number %d", v)
	case bool:
		return fmt.Sprintf("value %t", v)
	}
	return fmt.Sprintf("type %s", value)
}

func heading(name string) string {
	if name == "device" {
		return "[[device]]"
	}
	return "[" + name + "]"
}

// tableList lists all headers.
func tableList() string {
	var list []string
	for _, k := range keys {
		if at := strings.LastIndexByte(k.name, '.'); at > 0 && !slices.Contains(list, heading(k.name[:at])) {
			list = append(list, heading(k.name[:at]))
		}
	}
	return strings.Join(list, ", ")
}
