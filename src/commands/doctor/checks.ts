import { existsSync, lstatSync, statSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { BadSettings, type Settings } from '../../config.ts'
import type { MediaPlace } from '../../domain/media.ts'
import { findAdminKey, findMasterKey } from '../../keys.ts'
import { hasInstances } from '../../media/storage/folder-id.ts'
import { openStorage, STORAGE_MISSING } from '../../media/storage/open-storage.ts'
import { mediaOf } from '../../media-settings.ts'
import { readDiskSpace } from '../../ops/disk.ts'
import { findListeningProblem } from '../../ops/listening.ts'
import { StoreUnavailable, StoreUnusable } from '../../store/errors.ts'
import { examineStore, type StoreExamination } from '../../store/examine-store.ts'
import { checkService, isPortTaken } from './check-service.ts'

export interface Finding {
  state: 'ok' | 'warning' | 'problem'
  /** A sentence for the operator, with the remedy of a problem. */
  text: string
}

/** `examine` examines the database, once for all checks. */
type Check = (settings: Settings, examine: () => Promise<StoreExamination | null>) => Promise<Finding[]>

const MB = 1_000_000
const GB = 1_000_000_000
const OTHERS = 0o077
/** The service itself warns above this difference. */
const MAX_CLOCK_DIFFERENCE_MS = 2_000
/** Webhook receivers refuse signatures that are older or newer than this (Standard Webhooks). */
const SIGNATURE_TOLERANCE_MS = 300_000

/** Every check with its name, in the order of the output. None of them writes. */
export const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ['Settings', async ({ misspelled }) => checkSettings(misspelled)],
  ['Data folder', settings => checkDataFolder(settings, resolve(settings.dataDir))],
  ['Disk', ({ dataDir }) => checkDisk(resolve(dataDir))],
  ['Master key', async settings => [checkMasterKey(settings)]],
  ['Admin key', async settings => [checkAdminKey(settings)]],
  ['Database', checkDatabase],
  ['Files', checkFiles],
  ['Service', checkPort],
]

function ok(text: string): Finding {
  return { state: 'ok', text }
}

function warning(text: string): Finding {
  return { state: 'warning', text }
}

function problem(text: string): Finding {
  return { state: 'problem', text }
}

function checkSettings(misspelled: readonly string[]): Finding[] {
  return misspelled.length === 0 ? [ok('All can be read.')] : misspelled.map(warning)
}

async function checkDataFolder({ databaseUrl, sandbox }: Settings, dataDir: string): Promise<Finding[]> {
  if (databaseUrl !== null && !sandbox) return [ok('With DATABASE_URL and SANDBOX=off it is not needed.')]
  const link = findDanglingLink(dataDir)
  if (link !== null) return [problem(`${link} is a link that leads nowhere: create its target, or set DATA_DIR.`)]
  const folder = existing(dataDir)
  const mayWrite = await access(folder, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  const user = process.getuid === undefined ? 'The user that runs Pombal' : `User ${process.getuid()}`
  if (!mayWrite) return [problem(`${user} cannot write to ${folder}: give that user the folder, or set DATA_DIR.`)]
  if (folder !== dataDir) return [ok(`${dataDir} does not exist yet. The first start creates it.`)]
  const isOpen = process.platform !== 'win32' && (statSync(dataDir).mode & OTHERS) !== 0
  if (isOpen) return [warning(`Other users can read ${dataDir}: run "chmod 700 ${dataDir}".`)]
  return [ok(dataDir)]
}

async function checkDisk(dataDir: string): Promise<Finding[]> {
  const space = await readDiskSpace(existing(dataDir))
  if (space === null) return [warning('The system does not say how much space is free.')]
  const text = `${(space.freeBytes / GB).toFixed(1)} of ${(space.totalBytes / GB).toFixed(1)} GB are free.`
  if (space.freeBytes === 0) return [problem(`The disk is full: ${text} Free up space.`)]
  return [space.isNearlyFull ? warning(`${text} Free up space before messages are refused.`) : ok(text)]
}

function checkMasterKey(settings: Settings): Finding {
  const found = readMasterKey(settings)
  if (typeof found === 'string') return problem(found)
  if (settings.masterKey !== null) return ok('In MASTER_KEY.')
  return ok(
    found === null ? 'The first start creates it in the data folder.' : 'In the data folder. Keep a copy elsewhere.',
  )
}

function checkAdminKey(settings: Settings): Finding {
  try {
    const found = findAdminKey(settings)
    if (settings.adminKey !== null) return ok(`In ${settings.adminKeyFile ?? 'ADMIN_KEY'}.`)
    return ok(found === null ? 'The first start creates it in the data folder.' : 'In the data folder.')
  } catch (error) {
    return problem(sentenceOf(error))
  }
}

/** @returns the key, null if none was created yet, or a sentence that says why it cannot be read */
function readMasterKey(settings: Settings): Buffer | null | string {
  try {
    return findMasterKey(settings)
  } catch (error) {
    return sentenceOf(error)
  }
}

export async function examineDatabase(settings: Settings): Promise<StoreExamination | null> {
  const key = readMasterKey(settings)
  return examineStore({ ...settings, masterKey: typeof key === 'string' ? null : key })
}

async function checkDatabase(settings: Settings, examine: () => Promise<StoreExamination | null>): Promise<Finding[]> {
  try {
    const found = await examine()
    return found === null ? [ok('SQLite. The first start creates it.')] : describe(found, settings)
  } catch (error) {
    return [problem(sentenceOf(error))]
  }
}

function describe(found: StoreExamination, { databaseUrl }: Settings): Finding[] {
  const { bytes, missingSteps, newestEventAt, clockDifferenceMs, isSynced } = found
  const findings = [ok(`${databaseUrl === null ? 'SQLite, intact' : 'PostgreSQL'}, ${(bytes / MB).toFixed(1)} MB.`)]
  if (missingSteps.length > 0) {
    const count = missingSteps.length === 1 ? 'a migration' : `${missingSteps.length} migrations`
    findings.push(warning(`The next start applies ${count} to it. Make a backup first.`))
  }
  if (!isSynced)
    findings.push(
      warning(
        'fsync is off in PostgreSQL: a crash of its machine can lose accepted messages or all data. Turn it on, unless the provider stores the write-ahead log elsewhere.',
      ),
    )
  if (clockDifferenceMs !== null && Math.abs(clockDifferenceMs) > MAX_CLOCK_DIFFERENCE_MS)
    findings.push(warning(clockSentence(`${Math.round(clockDifferenceMs / 1_000)} s from the database's`)))
  if (newestEventAt !== null && newestEventAt - Date.now() > SIGNATURE_TOLERANCE_MS)
    findings.push(warning(clockSentence('behind the newest event')))
  return findings
}

function clockSentence(how: string): string {
  return `This machine's clock is ${how}: run NTP. Receivers refuse webhooks with a wrong time.`
}

async function checkFiles(settings: Settings, examine: () => Promise<StoreExamination | null>): Promise<Finding[]> {
  // The check of the database reports why it cannot be examined.
  const known = (await examine().catch(() => null))?.storage ?? null
  const place = mediaOf(settings)?.place ?? null
  if (place === null) return [known?.hasFiles ? problem(STORAGE_MISSING) : ok('Without MEDIA_URL, nodes refuse files.')]
  if (place.kind === 'folder' && known?.hasStored) {
    const isDefault = settings.media.place === null
    const lost = `The database lists files, but ${place.path} has none: mount or restore it, or correct MEDIA_URL.`
    if (!hasInstances(place.path)) return [isDefault ? warning(lost) : problem(lost)]
    if (!isDefault) return [await checkStorage({ ...place, id: known.id })]
  }
  return [await checkStorage(place)]
}

async function checkStorage(place: MediaPlace): Promise<Finding> {
  const name = place.kind === 'folder' ? place.path : `The bucket ${place.bucket}${at(place.endpoint)}`
  const storage = await openStorage(place)
  try {
    await storage.check()
    return ok(`${name}.`)
  } catch (error) {
    const { name: kind, code = kind, message } = error as NodeJS.ErrnoException
    const remedy = place.kind === 'folder' ? 'correct MEDIA_URL' : 'correct MEDIA_URL or the credentials'
    return problem(`${name} cannot be used (${message === '' ? code : message}): ${remedy}.`)
  } finally {
    await storage.close()
  }
}

function at(endpoint: string | null): string {
  return endpoint === null ? '' : ` at ${endpoint}`
}

async function checkPort(settings: Settings): Promise<Finding[]> {
  if (settings.port === 0) return [ok('PORT is 0: the system chooses one.')]
  const { state, text } = await checkService(settings)
  if (state === 'ready') return [ok(text)]
  if (state === 'not_ready') return [warning(text)]
  if (state === 'foreign') return [problem(text), ...(await checkMetricsPort(settings))]
  const { host, port } = settings
  const refused = await findListeningProblem({ host, port, setting: 'PORT' })
  return [refused === null ? ok(text) : problem(refused), ...(await checkMetricsPort(settings))]
}

/** Call only if the service does not run. */
async function checkMetricsPort({ host, metricsPort }: Settings): Promise<Finding[]> {
  if (metricsPort === null || metricsPort === 0) return []
  if (await isPortTaken(host, metricsPort))
    return [problem(`Another program uses port ${metricsPort} of ${host}: set METRICS_PORT to a free port.`)]
  const refused = await findListeningProblem({ host, port: metricsPort, setting: 'METRICS_PORT' })
  return refused === null ? [] : [problem(refused)]
}

/** The link that leads nowhere, if the folder is one or is below one. */
function findDanglingLink(folder: string): string | null {
  if (existsSync(folder) || dirname(folder) === folder) return null
  return isLink(folder) ? folder : findDanglingLink(dirname(folder))
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false
  }
}

/** The folder, or the nearest one above it that exists. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder))
}

/** @throws the error itself, unless it is one that an operator can solve */
function sentenceOf(error: unknown): string {
  if (error instanceof BadSettings || error instanceof StoreUnusable || error instanceof StoreUnavailable)
    return error.message
  if ((error as NodeJS.ErrnoException).syscall !== undefined) return (error as Error).message
  throw error
}
