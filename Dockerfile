# The image holds one static binary, the file of countries, and nothing else: no shell, no package
# manager, no libc to patch.
#
# The tags are exact, here and in docker-compose.yml, so that a build changes only when this file
# does. A digest would be stricter: look it up (docker buildx imagetools inspect) and write
# TAG@sha256:… if your own rules ask for one.
#
# BuildKit names the platform of the machine that builds, where everything runs that is run here, and
# the architecture that the binary is for. Older engines name neither: then both are their own.
FROM --platform=${BUILDPLATFORM:-linux} golang:1.26.11-bookworm AS build
# The countries of addresses, out of Debian's package, which would bring Tor. They are of the IPFire
# Project, under CC BY-SA 4.0, as the files themselves say.
WORKDIR /countries
RUN apt-get update -q && apt-get download -q tor-geoipdb && dpkg-deb -x tor-geoipdb_*.deb . && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ARG VERSION=dev
ARG COMMIT
ARG TARGETARCH
# What is uploaded or piped in, and does not fit into memory, waits there.
RUN mkdir -p /out/tmp && chmod 1777 /out/tmp
# Only the modules that the binary needs are fetched. The caches are removed in the same step: in a
# layer they would be a gigabyte that no later build uses.
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.builtFrom=$COMMIT" -o /out/footfall ./cmd/footfall && \
    rm -rf /root/.cache/go-build /go/pkg/mod

FROM scratch
ARG VERSION=dev
ARG COMMIT
# When it was created, and where its source is, says who builds it, as `make image` does (--label).
LABEL org.opencontainers.image.title=footfall \
      org.opencontainers.image.description="Counts visits to web pages, exactly, in PostgreSQL" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$COMMIT \
      org.opencontainers.image.licenses="MIT AND CC-BY-SA-4.0"
# For a PostgreSQL that is reached over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /countries/usr/share/tor /usr/share/tor
COPY --from=build /out /
VOLUME /tmp
# A number, since there is no /etc/passwd here to look a name up in; Kubernetes' runAsNonRoot needs
# a number, too.
USER 65532:65532
# Nobody outside a container reaches its loopback.
ENV FOOTFALL_ADDR=0.0.0.0:8080
EXPOSE 8080
# The timeout is a second longer than the command waits for the service, so that the command ends by
# itself and says why. Kubernetes ignores this check, and should ask /livez and /readyz itself.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=6 CMD ["/footfall", "health"]
ENTRYPOINT ["/footfall"]
CMD ["serve"]
