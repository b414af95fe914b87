// SPDX-License-Identifier: Apache-2.0
// The command: finds the subcommand, which does the rest.
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "onnxtrain/base.h"
#include "output_files.h"
#include "report.h"

static const command *const commands[] = {
    &command_train,     &command_eval, &command_export,    &command_check, &command_info,
    &command_artifacts, &command_grad, &command_aggregate, &command_ckpt,  &command_ops,
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void overview(FILE *out)
{
    fprintf(out, "onnxtrain %s: train ONNX models\n\n", ot_version());
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  onnxtrain %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\n`onnxtrain COMMAND --help` shows a command's options and an example.\n");
}

static void overview_man(FILE *out)
{
    fprintf(out, ".TH ONNXTRAIN 1\n.SH NAME\nonnxtrain \\- train ONNX models\n.SH SYNOPSIS\n"
                 ".B onnxtrain\nCOMMAND [ARGUMENT]... [OPTION]...\n.SH COMMANDS\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, ".TP\n.B onnxtrain\\-%s(1)\n%s\n", commands[i]->name, commands[i]->summary);
}

static int refuse_command(const char *name)
{
    const char *names[N_COMMANDS];

    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    return report_unknown(names, N_COMMANDS, name, "there is no command '%s'; commands are", name);
}

// help [COMMAND] | help --man [COMMAND]
static int help(int argc, char **argv)
{
    const bool is_man = argc > 1 && strcmp(argv[1], "--man") == 0;
    const char *name = argc > 1 + is_man ? argv[1 + is_man] : NULL;
    const command *c = name ? find_command(name) : NULL;

    if (name && !c)
        return refuse_command(name);
    if (c)
        (is_man ? command_man : command_help)(c, stdout);
    else
        (is_man ? overview_man : overview)(stdout);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const command *c;

    open_standard_files();
    signal(SIGXFSZ, SIG_IGN); // a file that may not become larger is an error of its write
    if (argc < 2) {
        overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        overview(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("onnxtrain %s\n", ot_version());
        return EXIT_SUCCESS;
    }
    c = find_command(argv[1]);
    if (!c && argv[1][0] == '-')
        return report_usage("unknown option '%s'; a command comes first: `onnxtrain --help` lists "
                            "them",
                            argv[1]);
    if (!c)
        return refuse_command(argv[1]);
    return command_main(c, argc - 1, argv + 1);
}
