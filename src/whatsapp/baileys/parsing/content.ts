import { proto } from 'baileys'

export type Content = proto.IMessage

/** Fields that hold a whole message. Baileys' `normalizeMessageContent` does not open all of them. */
const WRAPPERS = [
  'ephemeralMessage',
  'viewOnceMessage',
  'viewOnceMessageV2',
  'viewOnceMessageV2Extension',
  'documentWithCaptionMessage',
  'editedMessage',
  'associatedChildMessage',
  'groupMentionedMessage',
  'botInvokeMessage',
  'botForwardedMessage',
  'botTaskMessage',
  'commentMessage',
  'questionMessage',
  'questionReplyMessage',
  'limitSharingMessage',
  'lottieStickerMessage',
  'eventCoverImage',
  'pollCreationMessageV4',
  'pollCreationOptionImageMessage',
] as const satisfies readonly (keyof Content)[]

const { AssociationType } = proto.MessageAssociation

/** The associations of messages that WhatsApp sends in addition to a picture or video that it has already sent. */
const SECOND_COPIES: ReadonlySet<unknown> = new Set([
  AssociationType.HD_VIDEO_DUAL_UPLOAD,
  AssociationType.HD_IMAGE_DUAL_UPLOAD,
  AssociationType.HEVC_VIDEO_DUAL_UPLOAD,
  AssociationType.MOTION_PHOTO,
])

/** Deeper than WhatsApp nests wrappers. The sender chooses the depth. */
const MAX_DEPTH = 5

/** The message without its wrappers. An answer or a message with buttons is converted to a text, file or location. */
export function openContent(wrapped: Content | null | undefined): Content | undefined {
  const content = layersOf(wrapped).at(-1)
  return content && { ...content, ...plainOf(content) }
}

/** The message and those inside its wrappers, from the outside in. */
export function layersOf(wrapped: Content | null | undefined): Content[] {
  const layers: Content[] = []
  let next = wrapped
  while (next && layers.length <= MAX_DEPTH) {
    layers.push(next)
    next = innerOf(next)
  }
  return layers
}

/** Whether the recipient may open the message only once. */
export function isViewOnce(wrapped: Content | null | undefined): boolean {
  return layersOf(wrapped).some(layer => {
    const file = layer.imageMessage ?? layer.videoMessage ?? layer.audioMessage
    return layer.viewOnceMessage || layer.viewOnceMessageV2 || layer.viewOnceMessageV2Extension || file?.viewOnce
  })
}

/** Whether it repeats an earlier message's picture or video in another quality, or is the video of a motion photo. */
export function isSecondCopy(message: Content | null | undefined): boolean {
  const layers = [message, ...layersOf(message?.deviceSentMessage?.message ?? message)]
  return layers.some(layer => SECOND_COPIES.has(layer?.messageContextInfo?.messageAssociation?.associationType))
}

/** An empty wrapper stays closed: it holds something that this version does not know. */
function innerOf(content: Content): Content | undefined {
  for (const name of WRAPPERS) {
    const inner = content[name]?.message
    if (inner && Object.keys(inner).length > 0) return inner
  }
  return undefined
}

/** The content as a text, file or location. Null if there is nothing to convert. */
function plainOf(content: Content): Content | null {
  const text = answerOf(content) || assistantTextOf(content)
  return text ? { extendedTextMessage: { text } } : cardOf(content)
}

/** What a person has chosen from buttons or a list. */
function answerOf(content: Content): string | null | undefined {
  const { buttonsResponseMessage, listResponseMessage, templateButtonReplyMessage, interactiveResponseMessage } =
    content
  return (
    buttonsResponseMessage?.selectedDisplayText ||
    listResponseMessage?.title ||
    templateButtonReplyMessage?.selectedDisplayText ||
    interactiveResponseMessage?.body?.text
  )
}

function assistantTextOf({ richResponseMessage }: Content): string | undefined {
  return richResponseMessage?.submessages?.flatMap(({ messageText }) => messageText || []).join('\n')
}

type Header = Pick<Content, 'imageMessage' | 'videoMessage' | 'documentMessage' | 'locationMessage'>

/** A message with buttons or a list, which businesses send. */
function cardOf(content: Content): Content | null {
  const { buttonsMessage, listMessage, templateMessage, highlyStructuredMessage, interactiveMessage } = content
  const template = templateMessage ?? highlyStructuredMessage?.hydratedHsm
  const hydrated = template?.hydratedTemplate ?? template?.hydratedFourRowTemplate
  const interactive = interactiveMessage ?? template?.interactiveMessageTemplate
  if (buttonsMessage) return asMessage(buttonsMessage.contentText || buttonsMessage.text, buttonsMessage)
  if (listMessage) return asMessage(listMessage.description || listMessage.title)
  if (hydrated) return asMessage(hydrated.hydratedContentText || hydrated.hydratedTitleText, hydrated)
  if (interactive) return asMessage(interactive.body?.text || interactive.header?.title, interactive.header)
  return null
}

/** @param header holds the picture, video, document or place above the text */
function asMessage(words: string | null | undefined, header?: Header | null): Content | null {
  const text = words || null
  const { imageMessage, videoMessage, documentMessage, locationMessage } = header ?? {}
  if (imageMessage) return { imageMessage: { ...imageMessage, caption: text } }
  if (videoMessage) return { videoMessage: { ...videoMessage, caption: text } }
  if (documentMessage) return { documentMessage: { ...documentMessage, caption: text } }
  if (locationMessage) return { locationMessage: { ...locationMessage, comment: text } }
  return text ? { extendedTextMessage: { text } } : null
}
