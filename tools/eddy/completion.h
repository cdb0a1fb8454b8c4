/* What shells complete, from the table of commands. */
#ifndef TOOLS_EDDY_COMPLETION_H
#define TOOLS_EDDY_COMPLETION_H

void completion_put_bash(void);
void completion_put_zsh(void);
void completion_put_fish(void);

#endif
