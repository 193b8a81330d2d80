import type { Logger } from 'pino'
import type { AllowedNetwork, MediaPlace, MediaTerms } from '../domain/media.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { StoreUnusable } from '../store/errors.ts'
import type { MediaRows } from '../store/media/media.ts'
import type { Store } from '../store/store.ts'
import { startCleaning } from './cleaning.ts'
import { Fetcher, type FetcherOptions } from './fetching/fetcher.ts'
import { FileReceiver } from './file-receiver.ts'
import { MediaLibrary } from './media-library.ts'
import { openStorage, STORAGE_MISSING } from './storage/open-storage.ts'
import type { MediaStorage } from './storage/storage.ts'

interface OpenMediaOptions extends MediaTerms {
  place: MediaPlace
  bytesPerMinute: number
  /** Default: none. */
  allowedNetworks?: readonly AllowedNetwork[]
  store: Store
  /** The ports that this process listens on, which may grow. */
  ownPorts: readonly number[]
  version: string
  logger: Logger
  onFetchEnded?: FetcherOptions['onEnded']
}

/** The only ports that files are fetched from, unless a network names another one. */
const PORTS = [80, 443]

/** Opens the storage. From then on, fetches files from their URLs and removes erased files. */
export async function openMedia(options: OpenMediaOptions): Promise<{ library: MediaLibrary; close(): Promise<void> }> {
  const { store, ownPorts, allowedNetworks = [] } = options
  const { hints, media: rows, clock } = store
  const storage = await openStorage(options.place)
  const checked = reportUnusable(storage, options)
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: false, allowedNetworks, ports: PORTS, ownPorts })
  const shared = { ...options, rows, storage, guard, now: clock.now }
  const cleaning = startCleaning({ ...shared, keepGoneMs: options.retentionMs })
  // An instance may have been deleted: its files have to be removed.
  const off = hints.on('access', () => cleaning.wake())
  const fetcher = new Fetcher({
    ...shared,
    receiver: new FileReceiver(async () => storage, rows, options, options.logger),
    onEnded: options.onFetchEnded,
  })
  return {
    library: new MediaLibrary({ ...shared, onDoomed: () => cleaning.wake() }),
    async close() {
      off()
      await Promise.all([fetcher.stop(), cleaning.stop()])
      await storage.close()
      await checked
    },
  }
}

/** An unusable storage is only logged. The service starts, because the storage may be available again later. */
async function reportUnusable(
  storage: MediaStorage,
  { place, logger }: Pick<OpenMediaOptions, 'place' | 'logger'>,
): Promise<void> {
  try {
    await storage.check()
  } catch (error) {
    logger.error({ ...place, err: error }, 'media.storage_unusable')
  }
}

/**
 * Call if no storage is configured.
 * @throws StoreUnusable if there are files: no node could read or remove them, so their instances could not be erased
 */
export async function refuseFiles(rows: Pick<MediaRows, 'findFolder'>): Promise<null> {
  if (!(await rows.findFolder()).hasFiles) return null
  throw new StoreUnusable(STORAGE_MISSING)
}
