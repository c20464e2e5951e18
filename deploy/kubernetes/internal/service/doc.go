// Package service asks roced's service for sockets of containers, as "roced socket" does.
package service
