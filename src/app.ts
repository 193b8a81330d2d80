import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DestinationStream, Logger } from 'pino'
import { testMessage } from './alerts/message.ts'
import { AlertSender } from './alerts/send.ts'
import { startAlerts } from './alerts/watch.ts'
import type { Api } from './api/context.ts'
import { createServer } from './api/server.ts'
import { comparedSettings } from './compared-settings.ts'
import type { Settings } from './config.ts'
import { connectionSettings, createConnector, createProxyCheck } from './connector.ts'
import { INSTANCE_KINDS } from './domain/instance.ts'
import { InstanceRunner, type RunnerOptions } from './instances/instance-runner.ts'
import { Supervisor } from './instances/supervisor.ts'
import { type Keys, openKeys } from './keys.ts'
import { systemClock } from './kit/clock.ts'
import type { FetchEnd } from './media/fetching/fetcher.ts'
import type { MediaLibrary } from './media/media-library.ts'
import { openMedia, refuseFiles } from './media/open-media.ts'
import { mediaOf, withFolderId } from './media-settings.ts'
import { openProvider } from './oidc/provider.ts'
import { readDiskSpace } from './ops/disk.ts'
import { startEndingLinks } from './ops/expired-links.ts'
import { Metrics, type MetricsText } from './ops/metrics.ts'
import { startMetricsServer } from './ops/metrics-server.ts'
import { Readiness } from './ops/readiness.ts'
import { startRetention } from './ops/retention.ts'
import { createAddressGuard } from './outbound/address-guard.ts'
import { identifyProgram } from './program-files.ts'
import { Sandbox, sandboxCalls } from './sandbox/sandbox.ts'
import { Renewal } from './store/leases/renewal.ts'
import { openStore } from './store/open-store.ts'
import type { Store } from './store/store.ts'
import { openTraces, type Traces } from './traces/open-traces.ts'
import { Dispatcher, type DispatcherOptions } from './webhooks/dispatcher.ts'
import { createPoster } from './webhooks/posting/post.ts'
import { signatureHeaders, signingKeys } from './webhooks/posting/signature.ts'
import { createTestReceiver } from './webhooks/posting/test-receiver.ts'
import { readInThread } from './whatsapp/threads/read-session.ts'
import { WhatsappThreads } from './whatsapp/threads/whatsapp-threads.ts'

export interface App {
  /** The URL to open in a browser. */
  url: string
  /** Where metrics can be read without a key; null: only with the admin key, at `url`. */
  metricsUrl: string | null
  adminKey: string
  /**
   * Reports this node as not ready and keeps serving for `DRAIN_SECONDS`, so that load balancers notice. `signal` ends the wait.
   */
  drain(signal: AbortSignal): Promise<void>
  /** Closes the modules in reverse order. To meet the limit, webhook attempts are aborted before it ends. */
  close(withinMs: number): Promise<void>
}

/** From the signal to the end of the process, `DRAIN_SECONDS` included. */
export const STOP_WITHIN_MS = 9_500
/** The time to record what has ended, release the leases and close the store, after the webhook attempts have ended. */
const RELEASE_MS = 1_500

/**
 * Connections that the kernel completes before they are accepted. It drops further ones, and callers retry after 1 s.
 * Linux allows at most `net.core.somaxconn`, 4,096 by default; Node's default is 511.
 */
const LISTEN_BACKLOG = 4_096

/** The dependencies of every module on this node. */
interface NodeContext {
  settings: Settings
  keys: Keys
  logger: Logger
  logTo: DestinationStream
  store: Store
  metrics: Metrics
  renewal: Renewal
  traces: Traces | null
  /** Called one after the other, in reverse order, when the node stops. Attempts in flight are aborted after `graceMs`. */
  closers: ((graceMs: number) => Promise<unknown>)[]
}

/** Opens the keys and the store, then starts the modules. If a module does not start, closes all that is open. */
export async function startApp(settings: Settings, logger: Logger, logTo: DestinationStream): Promise<App> {
  const keys = openKeys(settings)
  const metrics = new Metrics(settings.version)
  const traces = await openTraces(settings.traces, settings.version, logger)
  const store = await openStore({
    dataDir: settings.dataDir,
    ...(settings.databaseUrl && { databaseUrl: settings.databaseUrl }),
    masterKey: keys.masterKey,
    ratePerMinute: settings.ratePerMinute,
    upgradeBackups: settings.upgradeBackups,
    logger,
    observer: metrics,
  })
  const closers = [() => store.close(), async () => traces?.close()]
  const renewal = new Renewal()
  const context: NodeContext = { settings, keys, logger, logTo, store, metrics, traces, renewal, closers }
  try {
    return await startModules({ ...context, settings: await withFolderId(settings, store.media) })
  } catch (error) {
    await closeAll(context, STOP_WITHIN_MS)
    throw error
  }
}

async function closeAll({ closers, logger }: NodeContext, withinMs: number): Promise<void> {
  const graceEndsAt = performance.now() + withinMs - RELEASE_MS
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
    await close(Math.max(0, graceEndsAt - performance.now())).catch(error =>
      logger.error({ err: error }, 'app.close_failed'),
    )
  }
}

/** Starts the modules in the order of their dependencies. The API listens last. */
async function startModules(context: NodeContext): Promise<App> {
  const { settings, keys, logger, store, metrics, closers } = context
  const ownPorts: number[] = []

  const { retentionMs } = settings
  const retention = startRetention({ retention: store.retention, retentionMs, logger, now: store.clock.now })
  const links = startEndingLinks(store.handouts, store.connections, logger)
  closers.push(retention.stop, links.stop)
  const mediaFolder = join(settings.dataDir, 'sandbox-media')
  const sandbox = settings.sandbox ? new Sandbox(store, logger, port => ownPorts.push(port), mediaFolder) : null
  if (sandbox) closers.push(() => sandbox.close())
  const webhooks = startWebhooks(context, { ownPorts, onLeaseLost: instanceId => supervisor.onLeaseLost(instanceId) })
  const alerts = openAlerts(context, webhooks)
  const threads = openThreads(context)
  const media = await openMediaLibrary(context, ownPorts)
  // Its closer is registered immediately, so that the leases are released if a later step fails.
  const supervisor = startSupervisor(context, { sandbox, lanes: webhooks.dispatcher, threads })
  let api: Api | undefined
  // Together, because a slow caller must not delay the release of the leases.
  closers.push(graceMs => Promise.all([api?.close(), supervisor.close(graceMs)]))
  const readiness = new Readiness({ ping: () => store.ping(), isRunning: () => supervisor.isRenewed })

  const renderMetrics = () =>
    metrics.render({
      totals: () => store.statistics.totals(),
      ping: () => store.ping(),
      inFlight: () => webhooks.dispatcher.inFlight,
      owned: () => supervisor.size,
      diskSpace: () => readDiskSpace(settings.dataDir),
    })
  const metricsPort = await openMetricsPort(context, renderMetrics)
  if (metricsPort !== null) ownPorts.push(metricsPort)
  const { adminKey } = keys
  api = await createApi(context, { adminKey, sandbox, webhooks, alerts, media, readiness, renderMetrics })
  await api.listen({ host: settings.host, port: settings.port, backlog: LISTEN_BACKLOG })
  const { port } = api.server.address() as AddressInfo
  ownPorts.push(port)

  return {
    url: settings.publicUrl?.href.replace(/\/$/, '') ?? `http://${urlHost(settings.host)}:${port}`,
    metricsUrl: metricsPort === null ? null : `http://${urlHost(settings.host)}:${metricsPort}/metrics`,
    adminKey,
    async drain(signal) {
      readiness.isDraining = true
      await sleep(settings.drainMs, undefined, { signal }).catch(() => undefined)
    },
    close: withinMs => closeAll(context, withinMs),
  }
}

type Webhooks = ReturnType<typeof startWebhooks>

function startWebhooks(
  { settings, logger, store, metrics, traces, renewal, closers }: NodeContext,
  { ownPorts, onLeaseLost }: Pick<DispatcherOptions, 'onLeaseLost'> & { ownPorts: readonly number[] },
) {
  const guard = createAddressGuard({
    loopbackAndPrivateAllowed: settings.webhook.privateAllowed,
    allowedNetworks: settings.webhook.allowedNetworks,
    ownPorts,
  })
  const { timeoutMs } = settings.webhook
  const poster = createPoster({ guard, timeoutMs, testReceiver: createTestReceiver(store.endpoints) })
  closers.push(() => poster.close())
  const dispatcher = new Dispatcher({
    mayAct: renewal.mayAct,
    onLeaseLost,
    store,
    post: poster,
    settings: { retryDelaysMs: settings.webhook.retryDelaysMs, version: settings.version },
    logger,
    observer: metrics,
    ...(traces && { traces }),
    clock: { ...systemClock, now: store.clock.now, steady: store.clock.steady },
  })
  closers.push(graceMs => dispatcher.close(graceMs))
  return { guard, poster, dispatcher }
}

function openAlerts({ settings, logger, store, closers }: NodeContext, { poster }: Webhooks): AlertSender {
  const { now } = store.clock
  const sender = new AlertSender({ post: poster, mail: settings.mail, version: settings.version, now })
  const watch = startAlerts({
    alerts: store.alerts,
    sender,
    diskSpace: () => readDiskSpace(settings.dataDir),
    host: hostname(),
    url: settings.publicUrl?.href ?? null,
    logger,
    now,
  })
  closers.push(() => watch.stop())
  return sender
}

function startSupervisor(
  context: NodeContext,
  { sandbox, lanes, threads }: Pick<RunnerOptions, 'lanes'> & { sandbox: Sandbox | null; threads: WhatsappThreads },
): Supervisor {
  const { settings, keys, logger, store, metrics, renewal } = context
  const connect = createConnector(settings, sandbox, threads)
  return new Supervisor({
    leases: store.leases,
    hints: store.hints,
    owner: `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`,
    runs: sandbox ? INSTANCE_KINDS : ['whatsapp'],
    settings: comparedSettings(settings, keys.adminKey),
    renewal,
    onRenewed: startedAt => threads.renewed(startedAt),
    run: (lease, ends) =>
      new InstanceRunner({
        ...ends,
        lanes,
        webhookTimeoutMs: settings.webhook.timeoutMs,
        connect,
        lease,
        store,
        onErased: async instanceId => sandbox?.forget(instanceId),
        onStoppedWithoutLease: () => metrics.onLeaseLost(),
        logger,
      }),
    logger,
  })
}

function openThreads(context: NodeContext): WhatsappThreads {
  const { settings, logger, logTo, store, metrics, traces, renewal, closers } = context
  // One core stays for the API and the webhooks.
  const oneFewerThanCores = Math.max(1, availableParallelism() - 1)
  const program = identifyProgram()
  const threads = new WhatsappThreads({
    store,
    threads: settings.whatsapp.threads ?? oneFewerThanCores,
    settings: connectionSettings(settings),
    media: mediaOf(settings),
    isReplaced: () => identifyProgram() !== program,
    logger,
    logTo,
    ...(traces && { onSent: send => traces.sent(send) }),
    // If the last renewal is too old, `mayAct` itself requests the next one.
    onRenewalNeeded: renewal.mayAct,
    onThreadDied: () => metrics.onThreadDied(),
  })
  closers.push(() => threads.close())
  return threads
}

/** Opens the port for metrics without a key, if there is one. @returns the port */
async function openMetricsPort(
  { settings: { host, metricsPort: port }, logger, closers }: NodeContext,
  render: () => Promise<MetricsText>,
): Promise<number | null> {
  if (port === null) return null
  const server = await startMetricsServer({ host, port }, render, logger)
  closers.push(() => server.close())
  return server.port
}

async function openMediaLibrary({ settings, closers, ...context }: NodeContext, ownPorts: readonly number[]) {
  const media = mediaOf(settings)
  const { store, metrics } = context
  const onFetchEnded = (end: FetchEnd) => metrics.onFetch(end)
  const opened = media
    ? await openMedia({ ...context, ...media, ownPorts, version: settings.version, onFetchEnded })
    : await refuseFiles(store.media)
  if (opened) closers.push(opened.close)
  return opened?.library ?? null
}

interface ApiParts {
  adminKey: string
  sandbox: Sandbox | null
  webhooks: Webhooks
  alerts: AlertSender
  media: MediaLibrary | null
  readiness: Readiness
  renderMetrics: () => Promise<MetricsText>
}

function createApi(
  { settings, logger, store, metrics, traces }: NodeContext,
  { adminKey, sandbox, webhooks, alerts, media, readiness, renderMetrics }: ApiParts,
): Promise<Api> {
  return createServer({
    store,
    settings: {
      adminKey,
      publicUrl: settings.publicUrl,
      trustedProxies: settings.trustedProxies,
      simulated: settings.whatsapp.url !== null,
      numberChecksPerDay: settings.numberChecksPerDay,
      retentionMs: settings.retentionMs,
      documented: {
        ratePerMinute: settings.ratePerMinute,
        webhookTimeoutMs: settings.webhook.timeoutMs,
        webhookRetryDelaysMs: settings.webhook.retryDelaysMs,
      },
    },
    logger,
    traces,
    now: store.clock.now,
    checkWebhookUrl: webhooks.guard.checkLiteral,
    sandbox: sandboxCalls(sandbox),
    webhooks: {
      headersOf: ({ secrets, ...attempt }) =>
        signatureHeaders({ ...attempt, keys: signingKeys(secrets), version: settings.version }),
      post: request => webhooks.poster.send(request),
    },
    proxies: { check: createProxyCheck(settings) },
    oidc: openProvider(settings),
    readSession: readInThread,
    alerts: {
      canMail: alerts.canMail,
      sendTest: target => alerts.send(target, testMessage(settings.publicUrl?.href ?? null, store.clock.now())),
    },
    media,
    diskSpace: () => readDiskSpace(settings.dataDir),
    panelDir: join(import.meta.dirname, '../panel/dist'),
    version: settings.version,
    metrics: renderMetrics,
    observer: metrics,
    isReady: () => readiness.check(),
    node: readiness,
  })
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
