package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"footfall/visit/country"
)

const (
	usualCountries = "/usr/share/tor/geoip" // the file that Debian's package tor-geoipdb installs
	countriesEvery = 5 * time.Second        // interval at which the file is checked for changes
)

// countriesFlag is the flag --countries of commands that count visits.
type countriesFlag struct {
	Countries string `env:"FOOTFALL_COUNTRIES" placeholder:"FILE|off"`
}

// openCountries reads the file that maps addresses to countries. Until ctx ends, it reads the file again after each change.
// It returns nil if --countries is off, or if the default file is missing or unreadable.
func (c countriesFlag) openCountries(ctx context.Context, log *slog.Logger) (*country.Countries, error) {
	path := c.Countries
	switch path {
	case "off":
		return nil, nil
	case "":
		path = usualCountries
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	countries, err := country.Open(path, log)
	switch {
	case err != nil && c.Countries == "":
		log.Warn("visitors' countries are not counted: the file with countries cannot be read", "file", path, "error", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--countries: %w: name another file, or off", err)
	}
	go countries.Follow(ctx, countriesEvery)
	return countries, nil
}
