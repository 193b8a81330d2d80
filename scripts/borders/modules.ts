import type { Module } from './find-violations.ts'
import { STARTUP } from './startup-modules.ts'
import { STORE } from './store-interfaces.ts'

/** Every module of the shipped code, and everything that it may import. `npm run check` fails on any other import. */
export const MODULES: readonly Module[] = [
  {
    path: 'bin',
    modules: [],
    packages: ['node:child_process', 'node:fs', 'node:module', 'node:net', 'node:os', 'node:path', 'node:url'],
    computed: true,
  },
  // The subcommands. They read the settings, and do their work without the rest of the service.
  {
    path: 'src/commands',
    modules: [
      'src/api/admin/secrets.ts',
      'src/config.ts',
      'src/domain',
      'src/environment.ts',
      'src/keys.ts',
      'src/media/storage/folder-id.ts',
      'src/media/storage/open-storage.ts',
      'src/media-settings.ts',
      'src/ops/disk.ts',
      'src/ops/listening.ts',
      'src/program-files.ts',
      'src/store/encryption',
      'src/store/engine',
      'src/store/examine-store.ts',
      'src/store/moving',
      'src/store/open-store.ts',
      'src/webhooks/posting/signature.ts',
      'src/whatsapp/baileys/transfer/session.ts',
      ...STORE,
    ],
    packages: [
      '@redis/client',
      'mysql2',
      'node:child_process',
      'node:crypto',
      'node:fs',
      'node:fs/promises',
      'node:http',
      'node:net',
      'node:os',
      'node:path',
      'node:readline/promises',
      'node:stream/consumers',
      'node:timers/promises',
      'node:url',
      'node:util',
      'pg',
    ],
  },

  ...STARTUP,

  { path: 'src/domain', modules: [], packages: ['node:crypto'] },
  { path: 'src/kit', modules: [], packages: ['node:os', 'node:stream', 'node:timers/promises'] },

  // The only modules with queries. The engine defines the tables. The leases are the only subject that it knows,
  // because every write checks them.
  {
    path: 'src/store/engine',
    modules: [
      'src/domain',
      'src/kit',
      'src/store/encryption',
      'src/store/clock.ts',
      'src/store/errors.ts',
      'src/store/hints.ts',
      'src/store/leases/leases.ts',
    ],
    packages: [
      'better-sqlite3',
      'kysely',
      'node:crypto',
      'node:fs',
      'node:path',
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'pg',
    ],
  },
  {
    path: 'src/store/encryption',
    modules: ['src/domain', 'src/kit', 'src/store/engine', 'src/store/errors.ts'],
    packages: ['kysely', 'node:crypto', 'node:fs', 'node:path'],
  },
  // Moves the data from one database to another.
  {
    path: 'src/store/moving',
    modules: ['src/store/encryption', 'src/store/engine', 'src/store/errors.ts'],
    packages: ['better-sqlite3', 'kysely', 'node:crypto', 'node:fs', 'node:path', 'pg'],
  },
  {
    path: 'src/store',
    modules: ['src/domain', 'src/kit', 'src/store/encryption', 'src/store/engine'],
    packages: ['kysely', 'node:async_hooks', 'node:crypto', 'node:fs', 'node:path', 'node:timers/promises'],
  },

  {
    path: 'src/api',
    modules: ['src/api/openapi', 'src/api/resources', 'src/domain', 'src/kit', ...STORE],
    packages: [
      '@fastify/swagger',
      '@fastify/type-provider-typebox',
      '@scalar/fastify-api-reference',
      'fast-json-stringify',
      'fastify',
      'ipaddr.js',
      'node:buffer',
      'node:crypto',
      'node:fs/promises',
      'node:http',
      'node:net',
      'node:os',
      'node:path',
      'node:stream',
      'node:stream/promises',
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'pino',
      'typebox',
      'yazl',
    ],
  },
  // The response bodies of the API. The panel imports their types.
  { path: 'src/api/resources', modules: ['src/api', 'src/domain', ...STORE], packages: ['typebox'] },
  {
    path: 'src/api/openapi',
    modules: ['src/api', 'src/api/resources', 'src/domain'],
    packages: ['@fastify/swagger', 'node:util', 'typebox'],
  },

  // The only module that imports Baileys.
  {
    path: 'src/whatsapp/baileys',
    modules: ['src/domain', 'src/kit', 'src/outbound', ...STORE],
    packages: [
      'baileys',
      'libsignal',
      'node:async_hooks',
      'node:crypto',
      'node:http',
      'node:https',
      'node:module',
      'node:stream/promises',
      'node:timers/promises',
      'pino',
    ],
  },
  {
    path: 'src/whatsapp',
    modules: [
      'src/domain',
      'src/kit',
      'src/media/open-files.ts',
      'src/outbound',
      'src/pictures/pictures.ts',
      'src/whatsapp/baileys',
      ...STORE,
    ],
    packages: [
      'node:crypto',
      'node:module',
      'node:net',
      'node:os',
      'node:perf_hooks',
      'node:timers/promises',
      'node:v8',
      'node:worker_threads',
      'pino',
    ],
  },

  // Connections to addresses that callers name: which addresses are allowed, the resolution of names, and the proxies of instances.
  {
    path: 'src/outbound',
    modules: ['src/domain', 'src/kit'],
    packages: [
      'agent-base',
      'ipaddr.js',
      'node:dns/promises',
      'node:events',
      'node:http',
      'node:https',
      'node:net',
      'node:os',
      'node:tls',
      'socks-proxy-agent',
      'undici',
    ],
  },
  {
    path: 'src/webhooks',
    modules: ['src/domain', 'src/kit', 'src/outbound', ...STORE],
    packages: ['node:crypto', 'node:http', 'node:stream', 'pino'],
  },
  // Reports problems to people. It posts with the code of the webhooks.
  {
    path: 'src/alerts',
    modules: ['src/domain', 'src/kit', 'src/webhooks/posting/post.ts', 'src/webhooks/posting/signature.ts', ...STORE],
    packages: ['node:crypto', 'node:timers/promises', 'nodemailer', 'pino'],
  },
  // Used while the settings are read, before the modules start.
  { path: 'src/media/storage/folder-id.ts', modules: [], packages: ['node:crypto', 'node:fs', 'node:path'] },
  // The files of messages: receives them, keeps them in a folder or a bucket, returns them and removes them.
  {
    path: 'src/media',
    modules: ['src/domain', 'src/kit', 'src/media/storage/folder-id.ts', 'src/outbound', ...STORE],
    packages: [
      '@aws-sdk/client-s3',
      'file-type',
      'node:crypto',
      'node:fs/promises',
      'node:http',
      'node:path',
      'node:stream',
      'node:timers/promises',
      'pino',
    ],
  },
  // Thumbnails. Only the separate process that makes one loads the library that decodes pictures.
  { path: 'src/pictures/picture-process.ts', modules: [], packages: ['node:fs', 'node:os', 'sharp'] },
  {
    path: 'src/pictures',
    modules: ['src/domain', 'src/kit', 'src/pictures/picture-process.ts'],
    packages: ['node:child_process', 'node:stream/promises', 'node:url'],
  },
  { path: 'src/instances', modules: ['src/domain', 'src/kit', ...STORE], packages: ['pino'] },
  {
    path: 'src/sandbox',
    modules: ['src/domain', 'src/kit', ...STORE],
    packages: ['@pombal/simulator', 'node:crypto', 'pino'],
  },
  {
    path: 'src/ops',
    modules: ['src/domain', 'src/kit', 'src/store/observer.ts', ...STORE],
    packages: ['node:fs/promises', 'node:http', 'node:net', 'node:timers/promises', 'pino', 'prom-client'],
  },

  // Spans for OpenTelemetry. Only a node that exports them loads the library.
  {
    path: 'src/traces',
    modules: ['src/domain', 'src/kit', ...STORE],
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
      'node:crypto',
      'node:os',
      'pino',
    ],
  },

  // Signs people in with an OpenID Connect provider.
  { path: 'src/oidc', modules: ['src/kit'], packages: ['openid-client'] },

  // The documents. The panel shows some of them as guides.
  { path: 'docs', modules: [], packages: [] },

  // A client of the management API.
  {
    path: 'panel/src',
    modules: ['docs', 'src/api/resources', 'src/domain'],
    packages: [
      '@fontsource-variable/figtree',
      '@fontsource-variable/jetbrains-mono',
      '@mantine/core',
      '@mantine/hooks',
      '@tanstack/react-query',
      '@tanstack/react-router',
      '@tanstack/react-virtual',
      'get-nonce',
      'qrcode',
      'react',
      'react-dom',
    ],
  },
  // A simulated WhatsApp network, independent of the service.
  {
    path: 'simulator/src',
    modules: [],
    packages: [
      '@simplewebauthn/server',
      'baileys',
      'libsignal',
      'node:crypto',
      'node:fs',
      'node:fs/promises',
      'node:http',
      'node:https',
      'node:module',
      'node:net',
      'node:os',
      'node:path',
      'node:stream/promises',
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'node:zlib',
      'ws',
    ],
  },
]
