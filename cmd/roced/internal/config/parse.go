package config

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Load reads a file. What is wrong in it is Mistakes.
func Load(path string) (*Config, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, text)
}

// maxFile is more than any configuration has, in bytes.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: %w: longer than 1 MiB, so it is no configuration", path, unix.EFBIG)
	}
	return text, err
}

// Parse reads the text of a file of this name. What is wrong in it is Mistakes.
func Parse(file string, text []byte) (*Config, error) {
	items, mistakes := read(text)
	p := &parser{config: Default(), mistakes: mistakes}
	for _, i := range items {
		p.item(i)
	}
	if mistakes == nil {
		p.check()
	}
	if len(p.mistakes) == 0 {
		return p.config, nil
	}
	for i := range p.mistakes {
		p.mistakes[i].File = file
	}
	slices.SortStableFunc(p.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return nil, p.mistakes
}

// parser makes a configuration of a document's items.
type parser struct {
	config   *Config
	mistakes Mistakes
	unknown  string // the table whose keys are not looked at, since it is a mistake itself
	refused  int    // line of the last device whose interface is a mistake already
}

func (p *parser) mistake(at place, key, format string, args ...any) {
	p.mistakes = append(p.mistakes, Mistake{Line: at.line, Column: at.column, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) item(i item) {
	switch {
	case i.header != "":
		p.header(i)
	case p.unknown == "" || !strings.HasPrefix(i.key, p.unknown+"."):
		p.value(i)
	}
}

// tables are those that a file may have, by how their headers begin.
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
		p.mistake(i.place, i.key, "no such table; there are %s", tableList())
	case bracket != i.header:
		p.mistake(i.place, i.key, "write it as %s", heading(i.key))
	case i.key == "device":
		p.unknown = ""
		p.config.Devices = append(p.config.Devices, NewDevice(""))
		p.config.device().line = i.line
	case strings.HasPrefix(i.key, "device.") && len(p.config.Devices) == 0:
		p.mistake(i.place, i.key, "belongs to a device: write [[device]] before it")
	default:
		p.unknown = ""
	}
}

func (p *parser) value(i item) {
	at := slices.IndexFunc(keys, func(k key) bool { return k.name == i.key })
	switch {
	case tables(i.key) != "":
		p.mistake(i.place, i.key, "is a table: write %s on a line of its own, and its keys below", heading(i.key))
	case at < 0:
		p.mistake(i.place, i.key, "no such key%s", instead(i.key))
	case strings.HasPrefix(i.key, "device.") && len(p.config.Devices) == 0:
		p.mistake(i.place, i.key, "belongs to a device: write [[device]] before it")
	case !keys[at].set(p.config, i.value):
		p.mistake(i.place, i.key, "is %s; write %s", shown(i.value), keys[at].want)
		if i.key == "device.interface" {
			p.refused = p.config.device().line
		}
	}
}

// instead says which key was probably meant.
func instead(key string) string {
	if known := nearest(key); known != "" {
		return fmt.Sprintf("; did you mean %s?", known)
	}
	return "; roced config example shows all"
}

func shown(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case int64:
		return fmt.Sprintf("the number %d", v)
	case bool:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("of type %s", value)
}

func heading(name string) string {
	if name == "device" {
		return "[[device]]"
	}
	return "[" + name + "]"
}

// tableList is all headers, for people.
func tableList() string {
	var list []string
	for _, k := range keys {
		if at := strings.LastIndexByte(k.name, '.'); at > 0 && !slices.Contains(list, heading(k.name[:at])) {
			list = append(list, heading(k.name[:at]))
		}
	}
	return strings.Join(list, ", ")
}
