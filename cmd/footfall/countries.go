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
	usualCountries = "/usr/share/tor/geoip" // where Debian's tor-geoipdb has them
	countriesEvery = 5 * time.Second        // the file may have changed
)

// countriesFlag is what commands have that count.
type countriesFlag struct {
	Countries string `env:"FOOTFALL_COUNTRIES" placeholder:"FILE|off"`
}

// openCountries reads the file of countries, and follows it until ctx ends. Nil: there is none.
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
		log.Warn("countries of visitors are not counted: the file of them cannot be read", "file", path, "error", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--countries: %w: name another file, or off", err)
	}
	go countries.Follow(ctx, countriesEvery)
	return countries, nil
}
