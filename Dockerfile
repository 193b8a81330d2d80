# Any Debian image with Node 24 and npm works. `npm run test:image` builds on one that it makes itself.
ARG BASE=docker.io/library/node:24.21.0-bookworm-slim

FROM ${BASE} AS manifests
WORKDIR /app
COPY package.json package-lock.json ./
COPY panel/package.json panel/
COPY simulator/package.json simulator/

# Everything that builds the panel and compiles the program.
FROM manifests AS build
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY docs docs
COPY bin bin
COPY src src
COPY simulator/src simulator/src
COPY panel panel
COPY scripts/build-panel.js scripts/build-program.js scripts/build-sbom.js scripts/
RUN npm run build
# Otherwise the image's user could not read the files of a clone that was made with a restrictive umask.
COPY LICENSE NOTICE ./
RUN chmod -R a+rX package.json LICENSE NOTICE bin dist panel/dist

# The packages that the compiled program loads, without development tools.
FROM manifests AS modules
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  --workspace=@pombal/simulator --include-workspace-root

FROM ${BASE}
LABEL org.opencontainers.image.title="Pombal" \
  org.opencontainers.image.description="Self-hosted WhatsApp messaging service" \
  org.opencontainers.image.licenses="MIT AND GPL-3.0-only" \
  org.opencontainers.image.version="0.1.0"
# The sandbox is on, so that the image can be tried. Set SANDBOX=off in production.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATA_DIR=/data SANDBOX=on
WORKDIR /app
COPY --from=modules /app/node_modules node_modules
COPY --from=build /app/package.json /app/LICENSE /app/NOTICE ./
COPY --from=build /app/bin bin
COPY --from=build /app/dist dist
COPY --from=build /app/panel/dist panel/dist
# /media is for files that nodes share.
RUN install -d -o 1000 -g 1000 -m 0700 /data /media && ln -s /app/bin/pombal.js /usr/local/bin/pombal
USER 1000:1000
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
# Only bash: starting Node every few seconds would cost more than running the service. The start period is long because large
# tables may take minutes to migrate after an upgrade. The first success ends it.
HEALTHCHECK --interval=5s --timeout=4s --start-period=10m --retries=3 \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["node", "/app/bin/pombal.js"]
CMD ["serve"]
