import type { Module } from './find-violations.ts'

/** The files of the store that other modules may import: its interfaces, not its implementation. */
const STORE = [
  'src/store/alerts/alerts.ts',
  'src/store/clock.ts',
  'src/store/endpoints/endpoints.ts',
  'src/store/errors.ts',
  'src/store/hints.ts',
  'src/store/store.ts',
  'src/store/until-stored.ts',
  'src/store/accounts/accounts.ts',
  'src/store/admission/admission.ts',
  'src/store/api-keys/api-keys.ts',
  'src/store/audit/audit.ts',
  'src/store/connections/connections.ts',
  'src/store/credentials/credentials.ts',
  'src/store/deliveries/deliveries.ts',
  'src/store/engine/page.ts',
  'src/store/events/events.ts',
  'src/store/instances/instances.ts',
  'src/store/leases/leases.ts',
  'src/store/leases/renewal.ts',
  'src/store/messages/messages.ts',
  'src/store/numbers/numbers.ts',
  'src/store/retention/retention.ts',
  'src/store/sandbox/phone-orders.ts',
  'src/store/sandbox/sandbox-storage.ts',
  'src/store/sessions/sessions.ts',
  'src/store/statistics/statistics.ts',
]

/** Every module of the shipped code, and everything that it may import. `npm run check` fails on any other import. */
export const MODULES: readonly Module[] = [
  { path: 'bin', modules: ['src/main.ts'], packages: ['node:module', 'node:path'], computed: true },

  // Startup: reads the settings once, creates the modules, and closes them in reverse order.
  {
    path: 'src/main.ts',
    modules: ['src/app.ts', 'src/config.ts', 'src/log-destination.ts', 'src/store/errors.ts'],
    packages: ['node:module', 'pino'],
  },
  {
    path: 'src/app.ts',
    modules: [
      'src/alerts',
      'src/api',
      'src/config.ts',
      'src/connector.ts',
      'src/domain',
      'src/instances',
      'src/keys.ts',
      'src/kit',
      'src/ops',
      'src/program-files.ts',
      'src/sandbox',
      'src/store',
      'src/webhooks',
      'src/whatsapp',
    ],
    packages: ['node:crypto', 'node:net', 'node:os', 'node:path', 'node:timers/promises', 'pino'],
  },
  {
    path: 'src/connector.ts',
    modules: ['src/config.ts', 'src/instances', 'src/sandbox', 'src/store', 'src/whatsapp'],
    packages: [],
  },
  { path: 'src/config.ts', modules: ['src/domain'], packages: ['ipaddr.js', 'node:fs', 'node:net'] },
  {
    path: 'src/keys.ts',
    modules: ['src/config.ts', 'src/store/engine/sync-to-disk.ts', 'src/store/errors.ts'],
    packages: ['node:crypto', 'node:fs', 'node:path'],
  },
  { path: 'src/program-files.ts', modules: [], packages: ['node:fs', 'node:path'] },
  { path: 'src/log-destination.ts', modules: [], packages: ['node:fs', 'pino'] },

  { path: 'src/domain', modules: [], packages: ['node:crypto'] },
  { path: 'src/kit', modules: [], packages: [] },

  // The only modules with queries. The engine defines the tables, but of the subjects it knows only the leases, which every write checks.
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
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'pino',
      'typebox',
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
    modules: ['src/domain', 'src/kit', ...STORE],
    packages: [
      'baileys',
      'libsignal',
      'node:async_hooks',
      'node:crypto',
      'node:https',
      'node:module',
      'node:timers/promises',
      'pino',
    ],
  },
  {
    path: 'src/whatsapp',
    modules: ['src/domain', 'src/kit', 'src/whatsapp/baileys', ...STORE],
    packages: [
      'node:module',
      'node:os',
      'node:perf_hooks',
      'node:timers/promises',
      'node:v8',
      'node:worker_threads',
      'pino',
    ],
  },

  {
    path: 'src/webhooks',
    modules: ['src/domain', 'src/kit', ...STORE],
    packages: [
      'ipaddr.js',
      'node:crypto',
      'node:dns/promises',
      'node:http',
      'node:https',
      'node:net',
      'node:os',
      'node:stream',
      'pino',
    ],
  },
  // Tells people about problems. It posts as webhooks do.
  {
    path: 'src/alerts',
    modules: ['src/domain', 'src/kit', 'src/webhooks/posting/post.ts', 'src/webhooks/posting/signature.ts', ...STORE],
    packages: ['node:crypto', 'node:fs/promises', 'node:timers/promises', 'nodemailer', 'pino'],
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

  // A client of the management API.
  {
    path: 'panel/src',
    modules: ['src/api/resources', 'src/domain'],
    packages: [
      '@fontsource-variable/figtree',
      '@fontsource-variable/jetbrains-mono',
      '@mantine/core',
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
      'baileys',
      'libsignal',
      'node:crypto',
      'node:http',
      'node:https',
      'node:module',
      'node:net',
      'node:util',
      'node:worker_threads',
      'node:zlib',
      'ws',
    ],
  },
]
