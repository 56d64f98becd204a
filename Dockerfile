# The image contains one static binary, the file of countries, and nothing else: no shell, no package
# manager, no libc to patch.
#
# The tags are exact, here and in docker-compose.yml, so that a build changes only when this file
# does. A digest would be stricter: look it up (docker buildx imagetools inspect) and write
# TAG@sha256:… if your own rules require one.
#
# BuildKit sets the platform of the build machine, on which all steps run, and the architecture of
# the binary. Older engines set neither: then both are those of the machine.
FROM --platform=${BUILDPLATFORM:-linux} golang:1.26.11-bookworm AS build
# The countries of addresses, extracted from Debian's package, which would also install Tor. They are
# from the IPFire Project, under CC BY-SA 4.0, as stated in the files.
WORKDIR /countries
RUN apt-get update -q && apt-get download -q tor-geoipdb && dpkg-deb -x tor-geoipdb_*.deb . && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ARG VERSION=dev
ARG COMMIT
ARG TARGETARCH
# For uploads and pipes that do not fit into memory.
RUN mkdir -p /out/tmp && chmod 1777 /out/tmp
# Fetches only the modules that the binary needs. The same step removes the caches: in a layer they
# would be a gigabyte that no later build uses.
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.builtFrom=$COMMIT" -o /out/footfall ./cmd/footfall && \
    rm -rf /root/.cache/go-build /go/pkg/mod

FROM scratch
ARG VERSION=dev
ARG COMMIT
# The builder sets the date and the source, as `make image` does (--label).
LABEL org.opencontainers.image.title=footfall \
      org.opencontainers.image.description="Counts visits to web pages, exactly, in PostgreSQL" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$COMMIT \
      org.opencontainers.image.licenses="MIT AND CC-BY-SA-4.0"
# For a PostgreSQL server with TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /countries/usr/share/tor /usr/share/tor
COPY --from=build /out /
VOLUME /tmp
# A number, because there is no /etc/passwd to look up a name. Kubernetes' runAsNonRoot also requires
# a number.
USER 65532:65532
# A container's loopback cannot be reached from outside.
ENV FOOTFALL_ADDR=0.0.0.0:8080
EXPOSE 8080
# The timeout is a second longer than the command's own, so that the command exits by itself and
# prints the reason. Kubernetes ignores this check: use probes for /livez and /readyz there.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=6 CMD ["/footfall", "health"]
ENTRYPOINT ["/footfall"]
CMD ["serve"]
