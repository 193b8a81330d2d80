import { Type } from 'typebox'
import type { Instance } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { ApiContext, MediaApi } from '../../context.ts'
import { isId } from '../../input.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { mediaIdSchema } from '../../resources/media.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

export const mediaParams = Type.Object({ id: instanceIdSchema, mediaId: mediaIdSchema })

/** @throws Refusal if no storage is configured, there is no such instance, or `mediaId` is malformed */
export async function getStorageOrRefuse(
  { media, store }: ApiContext,
  { id, mediaId }: { id: string; mediaId?: string },
): Promise<{ media: MediaApi; instance: Instance }> {
  if (media === null) throw new Refusal('media_not_configured')
  const instance = await getInstanceOrRefuse(store, id)
  if (mediaId !== undefined && !isId(mediaId)) throw new Refusal('media_not_found')
  return { media, instance }
}
