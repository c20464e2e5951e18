// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// place is a position in the file, from 1.
type place struct{ line, column int }

// item is a key with its value, or the header of a table.
type item struct {
	place
	key    string // with its tables: "device.tuning.busy_poll"
	header string // "[", "[[", or empty for a key with a value
	value  any    // string, int64, bool, or other
}

// other is a value of a type that no key accepts.
type other string

// read returns the items of a document in order. Errors of TOML itself, such as duplicate keys, are returned
// alone.
func read(text []byte) ([]item, []Error) {
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, []Error{syntax(err)}
	}
	d := &document{}
	d.parser.Reset(text)
	for d.parser.NextExpression() {
		d.expression(d.parser.Expression())
	}
	if err := d.parser.Error(); err != nil {
		return nil, []Error{syntax(err)}
	}
	return d.items, nil
}

// syntax converts an error of the parser.
func syntax(err error) Error {
	m := Error{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	if at := new(toml.DecodeError); errors.As(err, &at) {
		m.Line, m.Column = at.Position()
		m.Key = strings.Join(at.Key(), ".")
	}
	return m
}

type document struct {
	parser unstable.Parser
	table  string // of the last header, with a trailing dot
	items  []item
}

func (d *document) expression(node *unstable.Node) {
	switch node.Kind {
	case unstable.Table:
		d.header(node, "[")
	case unstable.ArrayTable:
		d.header(node, "[[")
	case unstable.KeyValue:
		d.keyValue(d.table, node)
	}
}

func (d *document) header(node *unstable.Node, bracket string) {
	at, key := d.key(node.Key())
	d.table = key + "."
	d.items = append(d.items, item{place: at, key: key, header: bracket})
}

// keyValue adds a key, or the keys of an inline table.
func (d *document) keyValue(table string, node *unstable.Node) {
	at, key := d.key(node.Key())
	key = table + key
	if value := node.Value(); value.Kind == unstable.InlineTable {
		d.items = append(d.items, item{place: at, key: key, header: "["})
		for inner := value.Children(); inner.Next(); {
			d.keyValue(key+".", inner.Node())
		}
		return
	}
	d.items = append(d.items, item{place: at, key: key, value: value(node.Value())})
}

// key joins the parts of a dotted key and returns its position.
func (d *document) key(parts unstable.Iterator) (at place, key string) {
	var names []string
	for parts.Next() {
		if names == nil {
			start := d.parser.Shape(parts.Node().Raw).Start
			at = place{start.Line, start.Column}
		}
		names = append(names, string(parts.Node().Data))
	}
	return at, strings.Join(names, ".")
}

func value(node *unstable.Node) any {
	switch node.Kind {
	case unstable.String:
		return string(node.Data)
	case unstable.Bool:
		return string(node.Data) == "true"
	case unstable.Integer:
		// The parser has validated the number.
		n, err := strconv.ParseInt(strings.ReplaceAll(string(node.Data), "_", ""), 0, 64)
		if err == nil {
			return n
		}
	}
	return other(strings.ToLower(node.Kind.String()))
}
