# The image holds one static binary and nothing else: no shell, no package manager, no libc to
# patch.
#
# The tags are exact, here and in docker-compose.yml, so that a build changes only when this file
# does. A digest would be stricter: look it up (docker buildx imagetools inspect) and write
# TAG@sha256:… if your own rules ask for one.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
ARG VERSION=dev
ARG COMMIT
# Only the modules that the binary needs are fetched. The caches are removed in the same step: in a
# layer they would be a gigabyte that no later build uses.
RUN CGO_ENABLED=0 \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.builtFrom=$COMMIT" -o /out/footfall ./cmd/footfall && \
    rm -rf /root/.cache/go-build /go/pkg/mod

FROM scratch
ARG VERSION=dev
ARG COMMIT
LABEL org.opencontainers.image.title=footfall \
      org.opencontainers.image.description="Counts visits to web pages, exactly, in PostgreSQL" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$COMMIT \
      org.opencontainers.image.licenses=MIT
# For a PostgreSQL that is reached over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/footfall /footfall
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
