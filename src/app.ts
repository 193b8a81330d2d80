import { randomBytes } from 'node:crypto'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createServer } from './api/server.ts'
import type { Settings } from './config.ts'
import { INSTANCE_KINDS } from './domain/instance.ts'
import { Refusal } from './domain/refusal.ts'
import { InstanceRunner } from './instances/instance-runner.ts'
import { Supervisor } from './instances/supervisor.ts'
import { openKeys } from './keys.ts'
import { EventLoopBudget } from './kit/event-loop-budget.ts'
import { Metrics } from './ops/metrics.ts'
import { startMetricsServer } from './ops/metrics-server.ts'
import { Readiness } from './ops/readiness.ts'
import { startRetention } from './ops/retention.ts'
import { Sandbox } from './sandbox/sandbox.ts'
import type { ConnectionRecord } from './store/connections/connections.ts'
import type { Lease } from './store/leases/leases.ts'
import { openStore } from './store/open-store.ts'
import { createAddressGuard } from './webhooks/address-guard.ts'
import { systemClock } from './webhooks/clock.ts'
import { createDispatcher } from './webhooks/dispatcher.ts'
import { createPoster } from './webhooks/post.ts'
import { signatureHeaders } from './webhooks/signature.ts'
import { ConnectionPacing } from './whatsapp/connection/connection-pacing.ts'

export interface App {
  /** The URL to open in a browser. */
  url: string
  /** Where metrics can be read without a key; null: only with the admin key, at `url`. */
  metricsUrl: string | null
  adminKey: string
  adminKeyPlace: string
  /**
   * Reports this node as not ready and keeps serving for `DRAIN_SECONDS`, so that load balancers notice. `signal` ends the wait.
   */
  drain(signal: AbortSignal): Promise<void>
  /** Closes the modules in reverse order and finishes work in flight, within 10 s. */
  close(): Promise<void>
}

/** Loaded with the first instance, because Baileys is a fifth of the code that a start would read and compile. */
async function loadDriver() {
  const driver = await import('./whatsapp/connection/connection.ts')
  // Now, because a killed process writes nothing when it ends.
  flushCompileCache()
  return driver
}

/**
 * Connections that the kernel completes before they are accepted. Beyond it, it drops them, and a caller tries again after 1 s.
 * Linux allows at most `net.core.somaxconn`, 4,096 by default; Node's default is 511.
 */
const LISTEN_BACKLOG = 4_096

const SANDBOX_OFF = 'Sandbox instances are switched off: start Pombal with SANDBOX=on.'

/** Creates every module and listens last. */
export async function startApp(settings: Settings, logger: Logger): Promise<App> {
  const keys = openKeys(settings)
  const metrics = new Metrics(settings.version)
  const store = await openStore({
    dataDir: settings.dataDir,
    ...(settings.databaseUrl && { databaseUrl: settings.databaseUrl }),
    masterKey: keys.masterKey,
    ratePerMinute: settings.ratePerMinute,
    logger,
    observer: metrics,
  })
  const { now } = store.clock
  const closers: (() => Promise<unknown>)[] = [() => store.close()]

  async function close(): Promise<void> {
    for (let closeNext = closers.pop(); closeNext !== undefined; closeNext = closers.pop()) {
      await closeNext().catch(error => logger.error({ err: error }, 'app.close_failed'))
    }
  }

  try {
    const retention = startRetention({ retention: store.retention, retentionMs: settings.retentionMs, logger, now })
    closers.push(() => retention.stop())

    const sandbox = settings.sandbox ? new Sandbox(store, logger) : null
    if (sandbox) closers.push(() => sandbox.close())

    const ownPorts: number[] = []
    const guard = createAddressGuard({
      loopbackAndPrivateAllowed: settings.webhook.privateAllowed,
      allowedNetworks: settings.webhook.allowedNetworks,
      ownPorts: () => (sandbox ? [...ownPorts, sandbox.port] : ownPorts),
    })
    const poster = createPoster({ guard, timeoutMs: settings.webhook.timeoutMs })
    closers.push(() => poster.close())

    const dispatcher = createDispatcher({
      store,
      post: poster,
      settings: { retryDelaysMs: settings.webhook.retryDelaysMs, version: settings.version },
      logger,
      mayAct: () => supervisor.mayAct,
      onLeaseLost: instanceId => supervisor.onLeaseLost(instanceId),
      onEnded: attempt => metrics.onAttempt(attempt),
      clock: { ...systemClock, now, steady: store.clock.steady },
    })
    closers.push(() => dispatcher.close())

    const eventLoopBudget = new EventLoopBudget()
    const pacing = new ConnectionPacing()
    const openConnection = async ({ kind }: ConnectionRecord, lease: Lease, onLeaseLost: () => void) => {
      const { createConnection } = await loadDriver()
      const connection = createConnection({
        lease,
        store,
        network: await networkOf(kind, lease),
        settings: {
          ...(settings.whatsapp.version && { version: settings.whatsapp.version }),
          messageTtlMs: settings.messageTtlMs,
        },
        mayAct: () => supervisor.mayAct,
        eventLoopBudget,
        pacing,
        logger,
        now,
        onLeaseLost,
      })
      return {
        start: () => connection.start(),
        get isLinking() {
          return connection.isLinking
        },
        stop: async (how: Parameters<typeof connection.stop>[0]) => {
          await connection.stop(how)
          await sandbox?.leave(lease.instanceId)
        },
      }
    }
    const networkOf = async (kind: ConnectionRecord['kind'], lease: Lease) => {
      if (kind === 'sandbox') {
        if (!sandbox) return { kind: 'none' as const, cause: 'sandbox_off' as const, reason: SANDBOX_OFF }
        const network = await sandbox.openNetwork(lease)
        return { kind: 'simulated' as const, url: network.url, linkBy: network.scanQr }
      }
      return settings.whatsapp.url
        ? { kind: 'simulated' as const, url: settings.whatsapp.url }
        : { kind: 'whatsapp' as const }
    }

    const supervisor = new Supervisor({
      leases: store.leases,
      hints: store.hints,
      owner: `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`,
      runs: sandbox ? INSTANCE_KINDS : ['whatsapp'],
      run: (lease, onLeaseLost) =>
        new InstanceRunner({
          lease,
          store,
          lanes: dispatcher,
          connect: openConnection,
          onErased: async instanceId => sandbox?.forget(instanceId),
          onLeaseLost,
          onStoppedWithoutLease: () => metrics.onLeaseLost(),
          logger,
        }),
      logger,
    })
    const readiness = new Readiness({ ping: () => store.ping(), isRunning: () => supervisor.isRenewed })
    let server: Awaited<ReturnType<typeof createServer>> | undefined
    // In parallel, because a slow caller must not delay the release of the leases.
    closers.push(() => Promise.all([server?.close(), supervisor.close()]))

    const renderMetrics = () =>
      metrics.render({
        totals: () => store.statistics.totals(),
        ping: () => store.ping(),
        inFlight: () => dispatcher.inFlight(),
        owned: () => supervisor.size,
      })
    const metricsServer =
      settings.metricsPort === null
        ? null
        : await startMetricsServer({ host: settings.host, port: settings.metricsPort }, renderMetrics, logger)
    if (metricsServer) {
      closers.push(() => metricsServer.close())
      ownPorts.push(metricsServer.port)
    }

    server = await createServer({
      store,
      settings: {
        adminKey: keys.adminKey,
        publicUrl: settings.publicUrl,
        trustedProxies: settings.trustedProxies,
        simulated: settings.whatsapp.url !== null,
        documented: {
          ratePerMinute: settings.ratePerMinute,
          webhookTimeoutMs: settings.webhook.timeoutMs,
          webhookRetryDelaysMs: settings.webhook.retryDelaysMs,
        },
      },
      logger,
      now,
      checkWebhookUrl: guard.checkLiteral,
      sandbox: {
        enabled: sandbox !== null,
        writeAs: (instanceId, message) => {
          if (!sandbox) throw new Refusal('sandbox_disabled')
          return sandbox.writeAs(instanceId, message)
        },
        isPhoneOn: async instanceId => sandbox?.isPhoneOn(instanceId) ?? false,
        switchPhone: async (instanceId, on) => sandbox?.switchPhone(instanceId, on),
      },
      webhooks: {
        headersOf: attempt => signatureHeaders({ ...attempt, version: settings.version }),
        post: request => poster.send(request),
      },
      panelDir: join(import.meta.dirname, '../panel/dist'),
      version: settings.version,
      metrics: renderMetrics,
      isReady: () => readiness.check(),
      isDraining: () => readiness.isDraining,
    })
    await server.listen({ host: settings.host, port: settings.port, backlog: LISTEN_BACKLOG })
    const { port } = server.server.address() as AddressInfo
    ownPorts.push(port)

    return {
      url: settings.publicUrl?.href.replace(/\/$/, '') ?? `http://${urlHost(settings.host)}:${port}`,
      metricsUrl: metricsServer && `http://${urlHost(settings.host)}:${metricsServer.port}/metrics`,
      adminKey: keys.adminKey,
      adminKeyPlace: keys.adminKeyPlace,
      async drain(signal) {
        readiness.drain()
        await sleep(settings.drainMs, undefined, { signal }).catch(() => undefined)
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
