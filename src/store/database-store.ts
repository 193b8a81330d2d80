import type { InstanceId } from '../domain/ids.ts'
import { systemClock } from '../kit/clock.ts'
import { Foreground } from '../kit/foreground.ts'
import { StoredAccounts } from './accounts/stored-accounts.ts'
import { LocalAdmission, SharedAdmission } from './admission/stored-admission.ts'
import { StoredAlerts } from './alerts/stored-alerts.ts'
import { KeyUses } from './api-keys/key-uses.ts'
import { StoredApiKeys } from './api-keys/stored-api-keys.ts'
import { AuditedWrites } from './audit/audited-writes.ts'
import { AuditChain } from './audit/chain.ts'
import { StoredAudit } from './audit/stored-audit.ts'
import type { StoreClock } from './clock.ts'
import { StoredConnections } from './connections/stored-connections.ts'
import { StoredConversations } from './conversations/stored-conversations.ts'
import { StoredCredentials } from './credentials/stored-credentials.ts'
import { StoredDeliveries } from './deliveries/stored-deliveries.ts'
import { StoredDirectory } from './directory/stored-directory.ts'
import type { Sealing } from './encryption/sealing.ts'
import { StoredEndpoints } from './endpoints/stored-endpoints.ts'
import { StoredOperatorEndpoints } from './endpoints/stored-operator-endpoints.ts'
import type { Backend } from './engine/backend.ts'
import type { Core, Reader } from './engine/core.ts'
import { Fence, type Operation } from './engine/operation.ts'
import { Probe } from './engine/probe.ts'
import type { Statements } from './engine/statement.ts'
import { Traces } from './engine/traces.ts'
import { Writer } from './engine/writer.ts'
import { StoreUnavailable } from './errors.ts'
import { EventRecorder } from './events/event-recorder.ts'
import { StoredEvents } from './events/stored-events.ts'
import { StoredHandouts } from './handouts/stored-handouts.ts'
import { LocalHints } from './hints.ts'
import { StoredInstances } from './instances/stored-instances.ts'
import { StoredLeases } from './leases/stored-leases.ts'
import { StoredDownloads } from './media/stored-downloads.ts'
import { StoredFetches } from './media/stored-fetches.ts'
import { StoredMedia } from './media/stored-media.ts'
import { Progress } from './messages/progress.ts'
import { StoredMessages } from './messages/stored-messages.ts'
import { StoredNumbers } from './numbers/stored-numbers.ts'
import { endOf, type StoreObserver } from './observer.ts'
import { StoredPaces } from './pace/stored-paces.ts'
import { StoredRetention } from './retention/stored-retention.ts'
import { StoredPhoneOrders } from './sandbox/stored-phone-orders.ts'
import { StoredSandbox } from './sandbox/stored-sandbox.ts'
import { StoredSessions } from './sessions/stored-sessions.ts'
import { StoredStatistics } from './statistics/stored-statistics.ts'
import type { Store } from './store.ts'
import { StoredTransfers } from './transfers/stored-transfers.ts'

/** How long the acceptance of a message waits for a lock of another node. Later acceptances wait behind it. */
const LOCK_TIMEOUT_OF_CALLS_MS = 500

/** The store on either database. */
export class DatabaseStore implements Store {
  readonly clock: StoreClock
  readonly hints: LocalHints
  readonly admission
  readonly instances
  readonly apiKeys
  readonly connections
  readonly handouts
  readonly messages
  readonly conversations
  readonly media
  readonly downloads
  readonly fetches
  readonly events
  readonly endpoints
  readonly operatorEndpoints
  readonly deliveries
  readonly leases
  readonly credentials
  readonly transfers
  readonly numbers
  readonly directory
  readonly paces
  readonly sandbox
  readonly phoneOrders
  readonly retention
  readonly statistics
  readonly sessions
  readonly alerts
  readonly accounts
  readonly audit
  readonly foreground = new Foreground()
  readonly #backend: Backend
  readonly #writer: Writer
  /** Commits writes that belong to no instance. */
  readonly #commonWriter: Writer
  readonly #ownWriters: Readonly<Record<NonNullable<Operation<unknown, unknown>['connection']>, Writer>>
  readonly #probe: Probe
  readonly #keyUses: KeyUses
  readonly #observer: StoreObserver | null
  readonly #afterClose: () => void
  #closing: Promise<void> | null = null

  constructor(
    backend: Backend,
    statements: Statements,
    sealing: Sealing,
    ratePerMinute: number,
    afterClose: () => void = () => undefined,
    observer: StoreObserver | null = null,
    hints: LocalHints = new LocalHints(),
    clock: StoreClock = systemClock,
  ) {
    this.#backend = backend
    this.hints = hints
    this.clock = clock
    this.#afterClose = afterClose
    const fence = new Fence(statements)
    this.#writer = new Writer(backend, fence, { commitsAtOnce: backend.commitsAtOnce, foreground: this.foreground })
    const { isShared } = statements.dialect
    const ownWriter = (lockTimeoutMs?: number) =>
      isShared ? new Writer(backend, fence, { lockTimeoutMs }) : this.#writer
    this.#commonWriter = ownWriter()
    this.#probe = new Probe(statements, this.#commonWriter)
    this.#ownWriters = { calls: ownWriter(LOCK_TIMEOUT_OF_CALLS_MS), admission: ownWriter(), leases: ownWriter() }
    this.#observer = observer
    const audited = new AuditedWrites(new AuditChain(statements), clock.now, this.#write)
    const core: Core = {
      statements,
      sealing,
      hints: this.hints,
      traces: new Traces(backend),
      reader: this.#guardReads(),
      write: audited.write,
    }
    const recorder = new EventRecorder(statements)
    this.#keyUses = new KeyUses(core)
    this.admission = isShared
      ? new SharedAdmission(core, ratePerMinute, this.#keyUses)
      : new LocalAdmission(core, ratePerMinute, this.#keyUses)
    const forget = (id: InstanceId) => this.admission.forgetToken(id)
    this.instances = new StoredInstances(core, forget)
    this.apiKeys = new StoredApiKeys(core, forget)
    this.connections = new StoredConnections(core, recorder)
    this.handouts = new StoredHandouts(core)
    this.messages = new StoredMessages(core, new Progress(statements, recorder))
    this.conversations = new StoredConversations(core)
    this.media = new StoredMedia(core)
    this.downloads = new StoredDownloads(core, recorder)
    this.fetches = new StoredFetches(core)
    this.events = new StoredEvents(core, recorder)
    this.endpoints = new StoredEndpoints(core)
    this.operatorEndpoints = new StoredOperatorEndpoints(core)
    this.deliveries = new StoredDeliveries(core)
    this.leases = new StoredLeases(core, clock)
    this.credentials = new StoredCredentials(core)
    this.transfers = new StoredTransfers(core, recorder)
    this.numbers = new StoredNumbers(core)
    this.directory = new StoredDirectory(core, recorder)
    this.paces = new StoredPaces(core)
    this.sandbox = new StoredSandbox(core)
    this.phoneOrders = new StoredPhoneOrders(core)
    this.retention = new StoredRetention(core)
    this.statistics = new StoredStatistics(core)
    this.sessions = new StoredSessions(core)
    this.alerts = new StoredAlerts(core)
    this.accounts = new StoredAccounts(core)
    this.audit = new StoredAudit(core, audited)
  }

  ping(): Promise<void> {
    return this.#probe.run()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  readonly #write = async <I, O>(operation: Operation<I, O>, input: I): Promise<O> => {
    const shared = operation.instanceId(input) === '' ? this.#commonWriter : this.#writer
    const writer = operation.connection === undefined ? shared : this.#ownWriters[operation.connection]
    const startedAt = performance.now()
    if (!operation.mayBeUndone) this.foreground.begin()
    try {
      const outcome = await writer.write(operation, input)
      this.#observer?.onWrite(operation.name, performance.now() - startedAt, 'committed')
      for (const step of operation.steps?.(input, outcome) ?? []) this.#observer?.onMessageStep(step)
      return outcome
    } catch (error) {
      this.#probe.noteFailure(error)
      this.#observer?.onWrite(operation.name, performance.now() - startedAt, endOf(error))
      throw error
    } finally {
      if (!operation.mayBeUndone) this.foreground.end()
    }
  }

  #guardReads(): Reader {
    const backend = this.#backend
    const guard = async <T>(read: Promise<T>): Promise<T> => {
      try {
        return await read
      } catch (error) {
        if (backend.classify(error) === 'unit') throw error
        throw new StoreUnavailable('The read failed.', { cause: error })
      }
    }
    return {
      query: query => guard(backend.reader.query(query)),
      run: (statement, values) => guard(backend.reader.run(statement, values)),
      each: (statement, rows) => guard(backend.reader.each(statement, rows)),
      untilSynced: () => guard(backend.untilSynced?.() ?? Promise.resolve()),
    }
  }

  async #close(): Promise<void> {
    await this.#keyUses.flush()
    const writers = [this.#writer, this.#commonWriter, ...Object.values(this.#ownWriters)]
    await Promise.all(writers.map(writer => writer.close()))
    await this.hints.close()
    await this.#backend.close()
    this.#afterClose()
  }
}
