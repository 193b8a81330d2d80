import type { Words } from './en.ts'
import * as alerts from './pt-br/alerts.ts'
import * as connection from './pt-br/connection.ts'
import * as endpoints from './pt-br/endpoints.ts'
import * as events from './pt-br/events.ts'
import * as files from './pt-br/files.ts'
import * as frame from './pt-br/frame.ts'
import * as guides from './pt-br/guides.ts'
import * as inbox from './pt-br/inbox.ts'
import * as instances from './pt-br/instances.ts'
import * as links from './pt-br/links.ts'
import * as messages from './pt-br/messages.ts'
import * as people from './pt-br/people.ts'
import * as problems from './pt-br/problems.ts'
import * as tools from './pt-br/tools.ts'
import * as webhook from './pt-br/webhook.ts'

export const ptBr: Words = {
  ...alerts,
  ...connection,
  ...endpoints,
  ...events,
  ...files,
  ...frame,
  ...guides,
  ...inbox,
  ...instances,
  ...links,
  ...messages,
  ...people,
  ...problems,
  ...tools,
  ...webhook,
}
