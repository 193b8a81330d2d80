import type { Module } from './find-violations.ts'

/** The files beside the modules. They read the settings once, create the modules, and close them in reverse order. */
export const STARTUP: readonly Module[] = [
  {
    path: 'src/main.ts',
    modules: ['src/app.ts', 'src/config.ts', 'src/log-destination.ts', 'src/log-for-people.ts', 'src/store/errors.ts'],
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
      'src/media',
      'src/media-settings.ts',
      'src/oidc',
      'src/ops',
      'src/outbound',
      'src/program-files.ts',
      'src/sandbox',
      'src/shared-settings.ts',
      'src/store',
      'src/webhooks',
      'src/whatsapp',
    ],
    packages: ['node:crypto', 'node:net', 'node:os', 'node:path', 'node:timers/promises', 'pino'],
  },
  {
    path: 'src/connector.ts',
    modules: [
      'src/config.ts',
      'src/domain',
      'src/instances',
      'src/outbound',
      'src/sandbox',
      'src/store',
      'src/whatsapp',
    ],
    packages: [],
  },
  {
    path: 'src/config.ts',
    modules: [
      'src/domain',
      'src/environment.ts',
      'src/media-settings.ts',
      'src/program-files.ts',
      'src/setting-values.ts',
    ],
    packages: ['ipaddr.js', 'node:net'],
  },
  {
    path: 'src/media-settings.ts',
    modules: ['src/domain', 'src/setting-values.ts'],
    packages: ['ipaddr.js', 'node:net', 'node:path'],
  },
  { path: 'src/setting-values.ts', modules: [], packages: [] },
  { path: 'src/environment.ts', modules: [], packages: ['fastest-levenshtein', 'node:fs'] },
  {
    path: 'src/keys.ts',
    modules: ['src/config.ts', 'src/store/engine/sync-to-disk.ts', 'src/store/errors.ts'],
    packages: ['node:crypto', 'node:fs', 'node:path'],
  },
  {
    path: 'src/shared-settings.ts',
    modules: ['src/config.ts', 'src/media/storage/folder-id.ts'],
    packages: ['node:crypto'],
  },
  { path: 'src/program-files.ts', modules: [], packages: ['node:fs', 'node:path'] },
  { path: 'src/log-for-people.ts', modules: [], packages: ['pino-pretty'] },
  { path: 'src/log-destination.ts', modules: [], packages: ['node:fs', 'pino'] },
]
