ARG NODE_IMAGE=node:20.20.2-bookworm-slim

FROM ${NODE_IMAGE} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 make g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The binary that sqlite3 would download wants a newer C library than this Debian has. The headers are in the image.
ENV npm_config_build_from_source=sqlite3 \
    npm_config_nodedir=/usr/local
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
# What runs is what the npm package has, with the dependencies of the lock file.
RUN npm pack --pack-destination /tmp \
 && mkdir /app \
 && tar -xzf /tmp/clarion-*.tgz -C /app --strip-components=1 \
 && chmod +x /app/dist/src/clarion.js \
 && npm prune --omit=dev --omit=optional \
 && mv node_modules /app/

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Clarion" \
      org.opencontainers.image.description="Software agents ask questions and get back exactly one authorised, durable answer" \
      org.opencontainers.image.licenses="MIT"
# The folder is made here so that a new volume takes over its owner and mode.
RUN groupadd --gid 10001 clarion \
 && useradd --uid 10001 --gid clarion --no-create-home --home-dir /var/lib/clarion --shell /usr/sbin/nologin clarion \
 && install -d -o clarion -g clarion -m 0700 /var/lib/clarion \
 && ln -s /app/dist/src/clarion.js /usr/local/bin/clarion
# Within a container loopback reaches nobody, and whoever reaches the port must have a token.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=3000 \
    AUTH_MODE=enforced \
    DATABASE_URL=sqlite:/var/lib/clarion/clarion.db
WORKDIR /app
COPY --from=build /app ./
USER 10001:10001
VOLUME ["/var/lib/clarion"]
EXPOSE 3000
STOPSIGNAL SIGTERM
# Not /health/ready: a server whose database is away waits for it, and whoever restarts it ends every wait for nothing.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without a shell, so that signals reach the server. Without arguments it serves; with some it is the command line.
ENTRYPOINT ["node", "/app/dist/src/clarion.js"]
CMD []
