// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "ckpt/hdf5_library.h"

ot__h5_library ot__h5;
static pthread_mutex_t h5_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool h5_is_loaded;

// ---- loading ----

#define MACRO_TEXT(name) #name
#define NAME_TEXT(name) MACRO_TEXT(name)
#define PLACE(name) {NAME_TEXT(name), offsetof(ot__h5_library, name)},
static const struct {
    const char *name;
    size_t place;
} h5_symbols[] = {OT_H5_FUNCTIONS(PLACE) OT_H5_NUMBERS(PLACE)};

// In a wheel the library has another name, which the one beside the module knows.
static const char *const h5_files[] = {"libonnxtrain-hdf5.so", OT_HDF5_SONAME};

static ot_status find_symbols(void *library)
{
    for (size_t i = 0; i < OT_COUNT(h5_symbols); i++) {
        void *symbol = dlsym(library, h5_symbols[i].name);

        if (symbol == NULL)
            return ot__error(OT_ERR_UNSUPPORTED, "%s has no %s", OT_HDF5_SONAME,
                             h5_symbols[i].name);
        memcpy((char *)&ot__h5 + h5_symbols[i].place, &symbol, sizeof symbol);
    }
    return OT_OK;
}

// Structs are those of one series of versions.
static ot_status check_version(void)
{
    unsigned major, minor, release;

    if (ot__h5.H5open() < 0 || ot__h5.H5get_libversion(&major, &minor, &release) < 0)
        return ot__error(OT_ERR_UNSUPPORTED, "%s does not start", OT_HDF5_SONAME);
    if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR)
        return OT_OK;
    return ot__error(OT_ERR_UNSUPPORTED, "%s is version %u.%u, this was built with %d.%d",
                     OT_HDF5_SONAME, major, minor, H5_VERS_MAJOR, H5_VERS_MINOR);
}

static bool is_loaded_already(void)
{
    void *library = dlopen(OT_HDF5_SONAME, RTLD_NOW | RTLD_NOLOAD);

    if (library != NULL)
        (void)dlclose(library);
    return library != NULL;
}

static ot_status load_library(void)
{
    void *library = NULL;
    bool is_ours;

    if (h5_is_loaded)
        return OT_OK;
    is_ours = !is_loaded_already();
    for (size_t i = 0; library == NULL && i < OT_COUNT(h5_files); i++)
        library = dlopen(h5_files[i], RTLD_NOW | RTLD_LOCAL); // for good
    if (library == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "HDF5 files need libhdf5, which cannot be loaded: %s",
                         dlerror());
    OT_TRY(find_symbols(library));
    if (is_ours) // what it has lost of a broken file, it would complain of when the process ends
        (void)ot__h5.H5dont_atexit();
    OT_TRY(check_version());
    h5_is_loaded = true;
    return OT_OK;
}

// ---- inside ----

ot_status ot__h5_enter(ot__h5_visit *visit)
{
    ot_status st;

    ot__forks_hold();
    pthread_mutex_lock(&h5_mutex);
    st = load_library();
    if (st != OT_OK) {
        pthread_mutex_unlock(&h5_mutex);
        ot__forks_release();
        return st;
    }
    (void)ot__h5.H5Eget_auto2(H5E_DEFAULT, &visit->report, &visit->context);
    (void)ot__h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)ot__h5.H5PLget_loading_state(&visit->plugins);
    (void)ot__h5.H5PLset_loading_state(0);
    return OT_OK;
}

void ot__h5_leave(const ot__h5_visit *visit)
{
    (void)ot__h5.H5Eclear2(H5E_DEFAULT);
    (void)ot__h5.H5PLset_loading_state(visit->plugins);
    (void)ot__h5.H5Eset_auto2(H5E_DEFAULT, visit->report, visit->context);
    pthread_mutex_unlock(&h5_mutex);
    ot__forks_release();
}

// ---- errors ----

// The innermost comes first, and knows the most.
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *context)
{
    if (n == 0)
        snprintf(context, OT_H5_MESSAGE_MAX, "%s", error->desc != NULL ? error->desc : "");
    return 0;
}

const char *ot__h5_message(char text[OT_H5_MESSAGE_MAX])
{
    text[0] = '\0';
    (void)ot__h5.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text);
    (void)ot__h5.H5Eclear2(H5E_DEFAULT);
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0' ? text : "no message";
}

ot_status ot__h5_error(ot_status status, const char *path, const char *what)
{
    char text[OT_H5_MESSAGE_MAX];

    return ot__error(status, "%s: %s: libhdf5: %s", path, what, ot__h5_message(text));
}

hid_t ot__h5_access(void)
{
    const hid_t list = ot__h5.H5Pcreate(*ot__h5.H5P_CLS_FILE_ACCESS_ID_g);

    if (list < 0)
        return H5I_INVALID_HID;
    if (ot__h5.H5Pset_fapl_sec2(list) >= 0 &&
        ot__h5.H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) >= 0 &&
        ot__h5.H5Pset_file_locking(list, false, true) >= 0)
        return list;
    (void)ot__h5.H5Pclose(list);
    return H5I_INVALID_HID;
}
