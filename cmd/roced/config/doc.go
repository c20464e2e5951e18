// Package config is roced config: it checks a configuration file of the service (check.go), and shows
// one with every key (example.go). The format is package internal/config's.
package config
