import { describe, expect, test } from 'vitest'
import { problemsOf } from '../test/units/settings-problems.ts'
import { isLoopbackHost, readSettings } from './config.ts'

const MIB = 1_048_576

describe('settings', () => {
  test('default to one machine, loopback, SQLite, and the schedule and rate of the contract', () => {
    expect(readSettings({})).toMatchObject({
      host: '127.0.0.1',
      port: 3000,
      dataDir: './data',
      databaseUrl: null,
      upgradeBackups: 2,
      adminKey: null,
      masterKey: null,
      trustedProxies: [],
      ratePerMinute: 100,
      numberChecksPerDay: 500,
      messageTtlMs: 86_400_000,
      retentionMs: 30 * 86_400_000,
      webhook: {
        timeoutMs: 10_000,
        retryDelaysMs: [1000, 5000, 30_000, 120_000, 600_000],
        allowedNetworks: [],
        privateAllowed: true,
      },
      media: { place: null, retentionMs: 30 * 86_400_000, quotaBytes: 2_048 * MIB, bytesPerMinute: 600 * MIB },
      whatsapp: { version: null, url: null },
      sandbox: true,
    })
  })

  test('treat an empty variable as unset', () => {
    expect(readSettings({ PORT: '', DATABASE_URL: ' ', SANDBOX: '' })).toEqual(readSettings({}))
  })

  test('report all problems at once, by name', () => {
    const problems = problemsOf({
      PORT: '70000',
      ADMIN_KEY: 'short',
      MASTER_KEY: 'AAAA',
      TRUSTED_PROXIES: 'balancer',
      LOG_LEVEL: 'loud',
      WEBHOOK_RETRY_DELAYS_MS: '1,two',
      WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/99',
      WHATSAPP_DEVICE: 'netscape',
      WHATSAPP_VERSION: '2.3000',
      WHATSAPP_URL: 'wss://web.whatsapp.example/ws/chat',
      WHATSAPP_THREADS: '0',
      SANDBOX: 'maybe',
    })
    expect(problems.map(problem => problem.split(' ')[0])).toEqual([
      'ADMIN_KEY',
      'MASTER_KEY',
      'PORT',
      'TRUSTED_PROXIES',
      'LOG_LEVEL',
      'WEBHOOK_RETRY_DELAYS_MS',
      'WEBHOOK_ALLOWED_NETWORKS',
      'WHATSAPP_VERSION',
      'WHATSAPP_DEVICE',
      'WHATSAPP_URL',
      'WHATSAPP_THREADS',
      'SANDBOX',
    ])
  })

  test('accept addresses and networks as trusted proxies, but not the whole internet', () => {
    const trusted = (TRUSTED_PROXIES: string) => readSettings({ TRUSTED_PROXIES }).trustedProxies
    expect(trusted('10.0.0.5, 192.168.0.0/16,::1, fd00::/8')).toEqual(['10.0.0.5', '192.168.0.0/16', '::1', 'fd00::/8'])
    for (const wrong of ['0.0.0.0/0', '::/00', '10', '10.0.0.5,', '10.0.0.0/33', 'true', 'loopback'])
      expect(problemsOf({ TRUSTED_PROXIES: wrong })).toHaveLength(1)
  })

  test.each([
    ['RATE_LIMIT_PER_MINUTE', '1000000001', '1–1000000000'],
    ['NUMBER_CHECKS_PER_DAY', '-1', '0–1000000'],
    ['MESSAGE_TTL_HOURS', '8761', '0.000001–8760'],
    ['RETENTION_DAYS', '36501', '1–36500'],
    ['MEDIA_RETENTION_DAYS', '0', '0.00001–36500'],
    ['MEDIA_ALLOWED_NETWORKS', '10.0.0.0/8:0', 'CIDR networks'],
    ['MEDIA_ALLOWED_NETWORKS', 'example.com', 'CIDR networks'],
    ['PROXY_ALLOWED_NETWORKS', 'proxy.example:1080', 'CIDR networks'],
    ['MEDIA_QUOTA_MB', '0', '1–1000000000'],
    ['MEDIA_MB_PER_MINUTE', '0', '1–1000000000'],
  ])('%s of %s is refused, and the error has the allowed values', (name, value, bounds) => {
    expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(bounds)])
  })

  test('accept networks for media and for proxies, with and without a port', () => {
    const MEDIA_ALLOWED_NETWORKS = '10.0.0.0/8, 10.1.2.3:9000,[fd00::/8]:9000,::1'
    expect(readSettings({ MEDIA_ALLOWED_NETWORKS }).media.allowedNetworks).toEqual([
      '10.0.0.0/8',
      { network: '10.1.2.3', port: 9000 },
      { network: 'fd00::/8', port: 9000 },
      '::1',
    ])
    const { proxyNetworks } = readSettings({ PROXY_ALLOWED_NETWORKS: '10.1.2.3:1080' })
    expect(proxyNetworks).toEqual([{ network: '10.1.2.3', port: 1080 }])
  })

  test('accept a folder or a bucket for media', () => {
    const place = (MEDIA_URL: string) => readSettings({ MEDIA_URL }).media.place
    expect(place('file:///srv/media%20files')).toEqual({ kind: 'folder', path: '/srv/media files' })
    const bucket = { kind: 'bucket', bucket: 'my-media', prefix: '', endpoint: null, region: null }
    expect(place('s3://my-media')).toEqual(bucket)
    expect(place('s3://my-media/')).toEqual(bucket)
    expect(place('s3://my-media/a/b/?endpoint=https://minio:9000&region=eu-west-1')).toEqual({
      ...bucket,
      prefix: 'a/b/',
      endpoint: 'https://minio:9000',
      region: 'eu-west-1',
    })
    const wrong = ['media', '/srv/media', 'file:///', 'file://host/media', 's3://', 's3://A_b', 's3://key:secret@media']
    const query = ['s3://media?region=a&secret=b', 's3://media?endpoint=minio', 's3://media/%ff', 'https://media/']
    for (const url of [...wrong, ...query]) expect(problemsOf({ MEDIA_URL: url }), url).toHaveLength(1)
  })

  test('accept a version of three numbers that fit into WhatsApp’s handshake', () => {
    expect(readSettings({ WHATSAPP_VERSION: '2.3000.4294967295' }).whatsapp.version).toEqual([2, 3000, 4_294_967_295])
    for (const wrong of ['2.3000', '2.3000.1.0', '2.3000.', 'v2.3000.1', '2.3000.4294967296'])
      expect(problemsOf({ WHATSAPP_VERSION: wrong })).toHaveLength(1)
  })

  test('accept a simulated WhatsApp only on loopback, in the forms that the driver accepts', () => {
    for (const url of ['ws://127.9.8.7:1/x', 'wss://[::1]/', 'ws://localhost/'])
      expect(readSettings({ WHATSAPP_URL: url }).whatsapp.url).toBe(url)
    for (const host of ['10.0.0.1', '127.0.0.1.example', 'a.localhost', '[::ffff:127.0.0.1]', '[::]'])
      expect(problemsOf({ WHATSAPP_URL: `ws://${host}/` })).toHaveLength(1)
  })

  test('require both keys with PostgreSQL, because nodes share them', () => {
    expect(problemsOf({ DATABASE_URL: 'postgres://localhost/pombal' })).toHaveLength(2)
    const key = Buffer.alloc(32, 1).toString('base64')
    expect(
      problemsOf({ DATABASE_URL: 'postgres://localhost/pombal', ADMIN_KEY: 'k'.repeat(32), MASTER_KEY: key }),
    ).toEqual([])
  })

  test('name a URL of PostgreSQL with a % that is not part of an escape', () => {
    const keys = { ADMIN_KEY: 'k'.repeat(32), MASTER_KEY: Buffer.alloc(32, 1).toString('base64') }
    for (const wrong of ['us%er@h/db', 'user:100%@h/db', 'user:a%ff@h/db', 'user@h/100%', 'user@%zz/db'])
      expect(problemsOf({ DATABASE_URL: `postgres://${wrong}`, ...keys })).toEqual([
        expect.stringMatching(/^DATABASE_URL must be .* % is written as %25\.$/),
      ])
    const right = 'postgres://us%25er:p%40ss@%2Fvar%2Frun/100%25'
    expect(readSettings({ DATABASE_URL: right, ...keys }).databaseUrl).toBe(right)
  })

  test('allow private webhooks only if no setting indicates that strangers can reach the service', () => {
    const privateAllowed = (env: NodeJS.ProcessEnv) => readSettings(env).webhook.privateAllowed
    expect(privateAllowed({ HOST: '::1', PUBLIC_URL: 'http://localhost:3000' })).toBe(true)
    expect(privateAllowed({ HOST: '0.0.0.0' })).toBe(false)
    expect(privateAllowed({ PUBLIC_URL: 'https://pombal.example' })).toBe(false)
    expect(privateAllowed({ NODE_ENV: 'production' })).toBe(false)
  })

  test('refuse a PUBLIC_URL below which Pombal cannot be served', () => {
    expect(readSettings({ PUBLIC_URL: 'https://pombal.example:8443/' }).publicUrl?.origin).toBe(
      'https://pombal.example:8443',
    )
    for (const end of ['/pombal', '/?a', '/#a', '/?', 'x@y/'])
      expect(problemsOf({ PUBLIC_URL: `https://pombal.example${end}` })).toEqual([
        expect.stringMatching(/^PUBLIC_URL must be .* without a path/),
      ])
  })

  test('switch the sandbox off in production by default', () => {
    expect(readSettings({ NODE_ENV: 'production' }).sandbox).toBe(false)
    expect(readSettings({ NODE_ENV: 'production', SANDBOX: 'on' }).sandbox).toBe(true)
    expect(readSettings({ SANDBOX: 'off' }).sandbox).toBe(false)
  })

  test.each(['127.0.0.1', '127.9.8.7', '::1', '[::1]', 'localhost', 'a.localhost', '::ffff:127.0.0.1'])(
    '%s is this machine alone',
    host => {
      expect(isLoopbackHost(host)).toBe(true)
    },
  )

  test.each(['0.0.0.0', '::', '10.0.0.1', 'localhost.example', 'example.org'])('%s is not', host => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

describe('the OpenID Connect provider', () => {
  const complete = {
    OIDC_ISSUER: 'https://login.example/realms/main',
    OIDC_CLIENT_ID: 'pombal',
    OIDC_CLIENT_SECRET: 'secret',
    PUBLIC_URL: 'https://pombal.example',
  }

  test('is named after its host, or by OIDC_NAME', () => {
    expect(readSettings(complete).oidc).toEqual({
      issuer: new URL('https://login.example/realms/main'),
      clientId: 'pombal',
      clientSecret: 'secret',
      name: 'login.example',
    })
    expect(readSettings({ ...complete, OIDC_NAME: 'Castle' }).oidc?.name).toBe('Castle')
    expect(readSettings({}).oidc).toBeNull()
  })

  test('needs every setting, and https except on loopback', () => {
    expect(problemsOf({ OIDC_ISSUER: complete.OIDC_ISSUER })).toEqual([
      'OIDC_CLIENT_ID is required with OIDC_ISSUER.',
      'OIDC_CLIENT_SECRET is required with OIDC_ISSUER.',
      'PUBLIC_URL is required with OIDC_ISSUER.',
    ])
    for (const issuer of ['http://login.example', 'login.example', 'https://a:b@login.example', 'https://x.example/?a'])
      expect(problemsOf({ ...complete, OIDC_ISSUER: issuer })).toEqual([expect.stringMatching(/^OIDC_ISSUER must be/)])
    expect(problemsOf({ ...complete, OIDC_NAME: 'x'.repeat(41) })).toEqual([
      expect.stringMatching(/^OIDC_NAME must be/),
    ])
    expect(readSettings({ ...complete, OIDC_ISSUER: 'http://127.0.0.1:8080' }).oidc).not.toBeNull()
  })
})
