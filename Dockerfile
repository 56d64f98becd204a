# The image holds one static binary and nothing else: no shell, no package manager, no libc to patch.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
ARG VERSION=dev
# Only the modules that the binary needs are fetched. The caches go in the same step: in a layer they would be a gigabyte
# that no later build uses.
RUN CGO_ENABLED=0 \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/footfall ./cmd/footfall && \
    rm -rf /root/.cache/go-build /go/pkg/mod

FROM scratch
# For a PostgreSQL that is reached over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/footfall /footfall
# A number, since there is no /etc/passwd here to look a name up in; Kubernetes' runAsNonRoot wants one too.
USER 65532:65532
# Inside a container loopback is reached by nobody.
ENV FOOTFALL_ADDR=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/footfall"]
CMD ["serve"]
