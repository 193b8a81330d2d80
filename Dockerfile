# syntax=docker/dockerfile:1
FROM node:24.21.0-alpine AS manifests
WORKDIR /app
COPY package.json package-lock.json ./
COPY panel/package.json panel/
COPY simulator/package.json simulator/

FROM manifests AS panel
RUN npm ci --ignore-scripts --workspace=@pombal/panel
COPY tsconfig.json ./
COPY src/domain src/domain
COPY docs docs
COPY panel panel
COPY scripts/build-panel.js scripts/
RUN node scripts/build-panel.js

# The service and the simulator for its sandbox, without the packages of the panel and without development tools.
FROM manifests AS modules
RUN npm ci --omit=dev --ignore-scripts --workspace=@pombal/simulator --include-workspace-root

FROM node:24.21.0-alpine
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
WORKDIR /app
COPY --from=modules /app ./
COPY LICENSE NOTICE ./
COPY bin bin
COPY src src
COPY simulator/src simulator/src
COPY --from=panel /app/panel/dist panel/dist
RUN install -d -o node -g node -m 0700 /data
USER 1000:1000
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
# Uses wget of BusyBox: starting Node every few seconds would cost more than running the service.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 \
  CMD wget -q -T 3 -O /dev/null "http://127.0.0.1:$PORT/readyz" || exit 1
CMD ["node", "bin/pombal.js"]
